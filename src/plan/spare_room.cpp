#include "plan/spare_room.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/buffers.h"
#include "plan/live_bytes.h"
#include "plan/packer.h"
#include "plan/place_updates.h"

namespace thimble {
namespace {

// Steps, first and last inclusive; none if first > last.
struct Span {
  int first = 0;
  int last = -1;
};

// A step that computes again, and what it takes to do without it: every result stays from where it
// was read last.
struct Repetition {
  int step = 0;
  double saves = 0;  // seconds, with those of steps that run for this one alone
  std::vector<std::pair<Span, Bytes>> stays;
};

// What a schedule repeats, and who reads it.
class Repetitions {
 public:
  Repetitions(const PlanRequest& request, const Schedule& schedule, const Buffers& buffers)
      : graph_(request.graph),
        costs_(request.costs),
        schedule_(schedule),
        buffers_(buffers),
        copies_(graph_.values.size()),
        holder_(buffers.uses.size()),
        last_touch_(buffers.uses.size(), -1),
        reader_(schedule.steps.size(), kNobody) {
    for (int s = 0; s < static_cast<int>(schedule.steps.size()); ++s) visit(s);
    for (const ValueId result : graph_.results) read_by(result, kSeveral);
    find_savings();
  }

  const std::vector<Repetition>& candidates() const { return candidates_; }

  // Marks the steps that run for this one alone, and for them.
  void mark_run_for(int step, std::vector<bool>& marked) const {
    for (const int source : run_for_[static_cast<size_t>(step)]) {
      marked[static_cast<size_t>(source)] = true;
      mark_run_for(source, marked);
    }
  }

 private:
  static constexpr int kNobody = -1, kSeveral = -2;

  // The latest copy of a value.
  struct Copy {
    int made = -1;      // step
    int buffer = -1;
    int lost = -1;      // the step whose result took over its bytes
    bool undone = false;  // they were added into
  };

  bool repeats(size_t step) const { return schedule_.steps[step].recompute; }

  void read_by(ValueId value, int step) {
    const int made = copies_[value.at()].made;
    if (made < 0) return;
    int& reader = reader_[static_cast<size_t>(made)];
    reader = reader == kNobody || reader == step ? step : kSeveral;
  }

  void visit(int s) {
    const size_t step = static_cast<size_t>(s);
    const Node& node = graph_[schedule_.steps[step].node];
    const StepBuffers& used = buffers_.steps[step];
    for (const ValueId input : node.inputs) read_by(input, s);
    for (const ValueId target : node.accumulate) {
      if (target.valid()) read_by(target, s);
    }
    for (const int buffer : used.inputs) last_touch_[static_cast<size_t>(buffer)] = s;
    if (repeats(step) && node.mark != Mark::recompute && !node.op->view) note(s);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      const size_t buffer = static_cast<size_t>(used.outputs[k]);
      copies_[output.at()] = {s, used.outputs[k], -1, false};
      last_touch_[buffer] = s;
      if (node.op->view && k == 0) continue;  // the bytes are still whose they were
      if (holder_[buffer].valid()) {
        Copy& before = copies_[holder_[buffer].at()];
        before.lost = s;
        before.undone = node.added_into(k).valid();
      }
      holder_[buffer] = output;
    }
  }

  void note(int s) {
    Repetition repetition{.step = s};
    for (const ValueId output : graph_[schedule_.steps[static_cast<size_t>(s)].node].outputs) {
      const Copy& copy = copies_[output.at()];
      if (copy.undone) return;
      const int touched = last_touch_[static_cast<size_t>(copy.buffer)];
      const Span span = {copy.lost >= 0 ? copy.lost : touched + 1, s - 1};
      repetition.stays.emplace_back(span, align_up(graph_[output].type.bytes()));
    }
    candidates_.push_back(std::move(repetition));
  }

  void find_savings() {
    std::vector<double> saves(reader_.size(), 0);
    run_for_.resize(reader_.size());
    for (size_t s = 0; s < reader_.size(); ++s) {
      if (!repeats(s)) continue;
      saves[s] += costs_.nodes[schedule_.steps[s].node.at()].seconds;
      if (reader_[s] < 0 || !repeats(static_cast<size_t>(reader_[s]))) continue;
      const size_t reader = static_cast<size_t>(reader_[s]);
      saves[reader] += saves[s];
      run_for_[reader].push_back(static_cast<int>(s));
    }
    for (Repetition& candidate : candidates_) {
      candidate.saves = saves[static_cast<size_t>(candidate.step)];
    }
  }

  const Graph& graph_;
  const Costs& costs_;
  const Schedule& schedule_;
  const Buffers& buffers_;
  std::vector<Copy> copies_;       // by value
  std::vector<ValueId> holder_;    // by buffer: the value that lies there, views apart
  std::vector<int> last_touch_;    // by buffer: step
  std::vector<int> reader_;        // by step: the only step that reads what it makes
  std::vector<std::vector<int>> run_for_;  // by step: repeated for it alone
  std::vector<Repetition> candidates_;
};

// By candidate: what it saves for what it takes. Bytes are dear at steps where the candidates want
// more of them than there are.
std::vector<double> worth_of(const std::vector<Repetition>& candidates,
                             const std::vector<Bytes>& live, Bytes limit) {
  std::vector<double> wanted(live.size() + 1, 0);
  for (const Repetition& candidate : candidates) {
    for (const auto& [span, bytes] : candidate.stays) {
      if (span.first > span.last) continue;
      wanted[static_cast<size_t>(span.first)] += static_cast<double>(bytes.count);
      wanted[static_cast<size_t>(span.last) + 1] -= static_cast<double>(bytes.count);
    }
  }
  std::vector<double> price_before(live.size() + 1, 0);  // sums
  double sum = 0;
  for (size_t s = 0; s < live.size(); ++s) {
    sum += wanted[s];
    const double room = static_cast<double>((limit - live[s]).count);
    price_before[s + 1] = price_before[s] + (sum > room ? sum / std::max(room, 1.0) : 1e-3);
  }
  std::vector<double> worth;
  for (const Repetition& candidate : candidates) {
    double price = 0;
    for (const auto& [span, bytes] : candidate.stays) {
      if (span.first > span.last) continue;
      price += static_cast<double>(bytes.count) *
               (price_before[static_cast<size_t>(span.last) + 1] -
                price_before[static_cast<size_t>(span.first)]);
    }
    worth.push_back(candidate.saves / (price + 1e-9));
  }
  return worth;
}

bool stays_within(LiveBytes& live, const Repetition& repetition, Bytes limit) {
  size_t fit = 0;
  for (const auto& [span, bytes] : repetition.stays) {
    if (span.first <= span.last) {
      if (live.most(span.first, span.last) + bytes > limit) break;
      live.add(span.first, span.last, bytes);
    }
    ++fit;
  }
  if (fit == repetition.stays.size()) return true;
  for (size_t i = 0; i < fit; ++i) {
    const auto& [span, bytes] = repetition.stays[i];
    if (span.first <= span.last) live.add(span.first, span.last, Bytes(-bytes.count));
  }
  return false;
}

// The schedule without those steps, and without repetitions that nobody reads.
Schedule without(const Graph& graph, const Schedule& schedule, const std::vector<bool>& left_out) {
  std::vector<bool> wanted(graph.values.size(), false);  // by value: the copy made before is read
  for (const ValueId result : graph.results) wanted[result.at()] = true;
  std::vector<Step> steps;  // last first
  for (size_t s = schedule.steps.size(); s-- > 0;) {
    const Step& step = schedule.steps[s];
    const Node& node = graph[step.node];
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId output) { return wanted[output.at()]; });
    if (left_out[s] || (step.recompute && !read)) continue;
    for (const ValueId output : node.outputs) wanted[output.at()] = false;
    for (const ValueId input : node.inputs) wanted[input.at()] = true;
    for (const ValueId target : node.accumulate) {
      if (target.valid()) wanted[target.at()] = true;
    }
    if (!is_update(node)) steps.push_back(step);
  }
  std::reverse(steps.begin(), steps.end());
  return place_updates(graph, steps);
}

// What of the schedule to leave out: greedily, what is worth most first.
std::vector<bool> choose(const PlanRequest& request, const Schedule& schedule,
                         const Buffers& buffers, Bytes limit) {
  const Repetitions repetitions(request, schedule, buffers);
  const std::vector<Repetition>& candidates = repetitions.candidates();
  const std::vector<Bytes> by_step = live_by_step(buffers.uses);
  const std::vector<double> worth = worth_of(candidates, by_step, limit);
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  LiveBytes live(by_step);
  std::vector<bool> left_out(schedule.steps.size(), false);
  std::vector<bool> pointless(schedule.steps.size(), false);  // run for what is left out
  for (const size_t i : order) {
    const int step = candidates[i].step;
    if (pointless[static_cast<size_t>(step)] || !stays_within(live, candidates[i], limit)) continue;
    left_out[static_cast<size_t>(step)] = true;
    repetitions.mark_run_for(step, pointless);
  }
  return left_out;
}

}  // namespace

Schedule using_spare_room(const PlanRequest& request, Schedule schedule) {
  // What a round leaves out makes room for the next, but hardly ever for much.
  const int rounds = schedule.steps.size() < 4000 ? 3 : 1;
  const auto buffers_of = [&](const Schedule& of) {
    return assign_buffers(request.graph, of, request.costs, request.sharing, request.microbatches);
  };
  Buffers buffers = buffers_of(schedule);
  const Bytes limit = live_peak(buffers.uses).bytes;
  for (int round = 0; round < rounds; ++round) {
    Schedule fuller = without(request.graph, schedule, choose(request, schedule, buffers, limit));
    if (fuller.steps.size() == schedule.steps.size()) break;
    buffers = buffers_of(fuller);
    if (live_peak(buffers.uses).bytes > limit) break;
    schedule = std::move(fuller);
  }
  return schedule;
}

}  // namespace thimble
