#include "plan/search/reduce_peak.h"

#include <algorithm>

#include "plan/bytes/live_bytes.h"
#include "plan/bytes/liveness.h"
#include "plan/schedule/place_updates.h"
#include "plan/search/search_limits.h"

namespace thimble {
namespace {

// A schedule, and what it holds.
struct Step {
  Drops drops;
  Schedule schedule;
  std::vector<Bytes> live;  // by call

  size_t fullest() const {
    return static_cast<size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  }
  Bytes peak() const { return live[fullest()]; }
  // Bytes above the goal, of all calls.
  double above(Bytes goal) const {
    double sum = 0;
    for (const Bytes bytes : live) sum += static_cast<double>(std::max(bytes - goal, {}).count);
    return sum;
  }
};

// Whether it is marked to go behind the forward pass.
bool never_stays(const ForwardPass& pass, ValueId value) {
  return pass.graph[pass.maker(value)].mark == Mark::recompute;
}

// The drops, and also every value marked `recompute`, behind all stages of the backward pass.
Drops heeding_marks(const ForwardPass& pass, Drops drops) {
  for (size_t v = 0; v < pass.graph.values.size(); ++v) {
    const ValueId value = make_id<ValueId>(v);
    if (!can_recompute(pass, value) || !never_stays(pass, value)) continue;
    for (size_t s = pass.size() - 1; s < drops.size(); ++s) drops[s].push_back(value);
  }
  return drops;
}

// A value is dropped behind a stage, or stays where it was.
struct Move {
  ValueId value;
  size_t stage = 0;
  bool stays = false;
};

Drops moved(Drops drops, const Move& move) {
  std::vector<ValueId>& dropped = drops[move.stage];
  if (move.stays) {
    std::erase(dropped, move.value);
  } else {
    dropped.push_back(move.value);
  }
  return drops;
}

// Moves that may lower the live bytes of the fullest call. A value that is not used there is
// dropped before it. Where there is none, a value that its stage recomputes is kept.
class Moves {
 public:
  Moves(const ForwardPass& pass, const Step& step)
      : pass_(pass),
        fullest_(step.fullest()),
        touched_(pass.graph.values.size(), kUntouched),
        in_use_(touched_.size(), false),
        seen_behind_(touched_.size(), false) {
    std::vector<Move> computed;  // in the stage at hand
    for (size_t s = 0; s < step.schedule.calls.size(); ++s) {
      const Call& call = step.schedule.calls[s];
      const Node& node = pass.graph[call.node];
      for (const ValueId input : node.inputs) read(pass.bytes_of[input.at()], s);
      for (const ValueId output : node.outputs) {
        const ValueId value = pass.bytes_of[output.at()];
        if (call.recompute && value == output) {
          computed.push_back({value, touched_[value.at()], true});
        }
        make(value, s);
      }
      if (is_update(node) || node.phase != Phase::per_microbatch || call.recompute) continue;
      if (s >= fullest_ && !behind_) {
        behind_ = true;
        computed_ = computed;
      }
      computed.clear();
      ++stage_;
    }
  }

  // The largest values first, and none below `least`.
  std::vector<Move> of(Bytes least) const {
    const std::vector<Move> drops = sorted(waiting_, least);
    return drops.empty() ? sorted(computed_, least) : drops;
  }

 private:
  static constexpr size_t kUntouched = SIZE_MAX;

  std::vector<Move> sorted(std::vector<Move> moves, Bytes least) const {
    const auto bytes = [&](const Move& move) { return pass_.graph[move.value].type.bytes(); };
    std::erase_if(moves, [&](const Move& move) {
      return bytes(move) < least || move.stage == kUntouched || !can_recompute(pass_, move.value) ||
             never_stays(pass_, move.value);
    });
    std::stable_sort(moves.begin(), moves.end(),
                     [&](const Move& a, const Move& b) { return bytes(a) > bytes(b); });
    return moves;
  }

  void read(ValueId value, size_t call) {
    const size_t v = value.at();
    if (!behind_) return touch(v, call);
    if (!seen_behind_[v] && !in_use_[v]) waiting_.push_back({value, touched_[v], false});
    seen_behind_[v] = true;
  }
  void make(ValueId value, size_t call) {
    if (!behind_) return touch(value.at(), call);
    seen_behind_[value.at()] = true;
  }
  void touch(size_t v, size_t call) {
    touched_[v] = stage_;
    if (call >= fullest_) in_use_[v] = true;
  }

  const ForwardPass& pass_;
  const size_t fullest_;         // call
  size_t stage_ = 0;             // at hand
  bool behind_ = false;          // the fullest call's
  std::vector<size_t> touched_;  // by value: the last stage that made or read it
  // By value: at the fullest call or later in its stage; behind it.
  std::vector<bool> in_use_, seen_behind_;
  std::vector<Move> waiting_, computed_;
};

class Squeeze {
 public:
  Squeeze(const ForwardPass& pass, const PlanRequest& request, const Schedule& start, int& tries,
          const SearchLimits& limits)
      : pass_(pass),
        request_(request),
        limits_(limits),
        tries_(tries),
        best_(look_at(heeding_marks(pass, drops_of(pass, start)))) {}

  // Towards a goal somewhat below the peak; once it is reached, towards the next one.
  std::vector<ReducedPeak> run() {
    Bytes goal;
    do {
      goal = Bytes(best_.peak().count - best_.peak().count / limits_.peak_part);
    } while (approach(goal));
    return std::move(found_);
  }

 private:
  Step look_at(Drops drops) {
    --tries_;
    call_watch(limits_);
    Step step{.drops = std::move(drops)};
    step.schedule = schedule_dropping(pass_, step.drops);
    step.live = live_by_call(live_ranges(request_.graph, step.schedule, request_.costs,
                                         request_.sharing, request_.microbatches));
    return step;
  }

  // Moves until the goal is reached. A later move may undo the harm of an earlier one, so the most
  // promising few are followed for some moves before they are given up.
  bool approach(Bytes goal) {
    double above = best_.above(goal);
    std::vector<Step> steps = {best_};
    for (int depth = 0; depth < limits_.peak_depth && above > 0; ++depth) {
      std::vector<std::pair<double, Step>> next;
      for (const Step& step : steps) expand(step, goal, next);
      if (next.empty() || tries_ <= 0) return false;
      std::stable_sort(next.begin(), next.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      if (next.size() > limits_.peak_followed) next.resize(limits_.peak_followed);
      steps.clear();
      for (auto& [left, step] : next) steps.push_back(std::move(step));
      if (next.front().first >= above) continue;
      above = next.front().first;
      depth = -1;
      take(steps.front());
    }
    return above == 0;
  }

  void expand(const Step& step, Bytes goal, std::vector<std::pair<double, Step>>& next) {
    const Bytes least((step.peak() - goal).count / limits_.peak_moves);
    for (const Move& move : Moves(pass_, step).of(least)) {
      if (tries_ <= 0) return;
      Step other = look_at(moved(step.drops, move));
      const double above = other.above(goal);
      const auto same = [&](const auto& known) { return known.first == above; };
      if (std::none_of(next.begin(), next.end(), same)) next.emplace_back(above, std::move(other));
    }
  }

  void take(const Step& step) {
    best_ = step;
    if (step.peak() >= lowest_) return;
    lowest_ = step.peak();
    found_.push_back({step.schedule, {step.peak(), predicted_seconds(request_, step.schedule)}});
  }

  const ForwardPass& pass_;
  const PlanRequest& request_;
  const SearchLimits& limits_;
  int& tries_;
  Step best_;  // nearest to the goal
  Bytes lowest_ = best_.peak();
  std::vector<ReducedPeak> found_;
};

}  // namespace

std::vector<ReducedPeak> reduced_peaks(const ForwardPass& pass, const PlanRequest& request,
                                       const Schedule& start, int& tries,
                                       const SearchLimits& limits) {
  return Squeeze(pass, request, start, tries, limits).run();
}

}  // namespace thimble
