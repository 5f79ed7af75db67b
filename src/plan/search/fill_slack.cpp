#include "plan/search/fill_slack.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/bytes/live_bytes.h"
#include "plan/bytes/liveness.h"
#include "plan/schedule/place_updates.h"
#include "plan/search/search_limits.h"

namespace thimble {
namespace {

// One copy of a value, from the call that makes it to the last that reads it or a view of it.
struct Copy {
  Bytes bytes;
  int buffer = -1;
  int made = -1;         // call; -1: there at the start
  int before_last = -1;  // the last calls that make or read it
  int last = -1;
  int lost = -1;              // the call whose result took over its bytes
  bool undone = false;        // they were added into
  bool stays_longer = false;  // in place of the next copy
  // The last step at which its bytes count as its own: those of a step that overwrites them count
  // once.
  int end() const { return lost >= 0 ? lost - 1 : last; }
};

// A call that recomputes.
struct Repetition {
  int call = 0;
  double saves = 0;        // seconds, with those of calls that run for this one alone
  std::vector<int> stay;   // copies that stay in place of its results
  std::vector<int> leave;  // copies that it reads last
};

// The recomputations of a schedule, their readers, and the memory that leaving them out takes.
class Repetitions {
 public:
  Repetitions(const PlanRequest& request, const Schedule& schedule, const Buffers& buffers)
      : graph_(request.graph),
        costs_(request.costs),
        schedule_(schedule),
        buffers_(buffers),
        current_(graph_.values.size(), -1),
        holder_(buffers.uses.size(), -1),
        reader_(schedule.calls.size(), kNobody) {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (buffers.sources[v] >= 0) make_copy(make_id<ValueId>(v), buffers.sources[v], -1);
    }
    for (int s = 0; s < static_cast<int>(schedule.calls.size()); ++s) visit(s);
    for (const ValueId result : graph_.results) read_by(result, kSeveral);
    find_what_leaves();
    find_savings();
  }

  std::vector<Repetition> candidates;
  std::vector<Copy> copies;
  std::vector<std::vector<int>> run_for;  // by call: repetitions for it alone

 private:
  static constexpr int kNobody = -1, kSeveral = -2;

  bool repeats(size_t call) const { return schedule_.calls[call].recompute; }
  Copy& copy_of(ValueId value) { return copies[static_cast<size_t>(current_[value.at()])]; }

  void make_copy(ValueId value, int buffer, int call) {
    current_[value.at()] = holder_[static_cast<size_t>(buffer)] = static_cast<int>(copies.size());
    copies.push_back({.bytes = align_up(graph_[value].type.bytes()),
                      .buffer = buffer,
                      .made = call,
                      .before_last = call,
                      .last = call});
  }

  void read_by(ValueId value, int call) {
    const int made = copy_of(value).made;
    if (made < 0) return;
    int& reader = reader_[static_cast<size_t>(made)];
    reader = reader == kNobody || reader == call ? call : kSeveral;
  }

  void touch(Copy& copy, int call) {
    if (copy.last == call) return;
    copy.before_last = copy.last;
    copy.last = call;
  }

  void visit(int s) {
    const size_t call = static_cast<size_t>(s);
    const Node& node = graph_[schedule_.calls[call].node];
    const std::vector<int>& made = buffers_.calls[call].outputs;
    const auto read = [&](ValueId value) {
      read_by(value, s);
      touch(copy_of(value), s);
    };
    for (const ValueId input : node.inputs) read(input);
    for (const ValueId target : node.accumulate) {
      if (target.valid()) read(target);
    }
    if (repeats(call) && node.mark != Mark::recompute && !node.op->view) note(s);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.op->view && k == 0) {  // the bytes are still whose they were
        current_[node.outputs[k].at()] = current_[node.inputs[0].at()];
        continue;
      }
      const int holder = holder_[static_cast<size_t>(made[k])];
      if (holder >= 0) {
        copies[static_cast<size_t>(holder)].lost = s;
        copies[static_cast<size_t>(holder)].undone = node.added_into(k).valid();
      }
      make_copy(node.outputs[k], made[k], s);
    }
  }

  void note(int s) {
    Repetition repetition{.call = s};
    for (const ValueId output : graph_[schedule_.calls[static_cast<size_t>(s)].node].outputs) {
      if (copy_of(output).undone) return;
      repetition.stay.push_back(current_[output.at()]);
    }
    for (const ValueId input : graph_[schedule_.calls[static_cast<size_t>(s)].node].inputs) {
      const int copy = current_[input.at()];
      auto& leave = repetition.leave;
      if (std::find(leave.begin(), leave.end(), copy) == leave.end()) leave.push_back(copy);
    }
    candidates.push_back(std::move(repetition));
  }

  // Of what a repetition reads, that whose bytes nobody touches behind it.
  void find_what_leaves() {
    for (Repetition& candidate : candidates) {
      std::erase_if(candidate.leave, [&](int id) {
        const Copy& copy = copies[static_cast<size_t>(id)];
        const bool dies = buffers_.uses[static_cast<size_t>(copy.buffer)].last == candidate.call;
        return copy.last != candidate.call || !(dies || copy.lost == candidate.call);
      });
    }
  }

  void find_savings() {
    std::vector<double> saves(reader_.size(), 0);
    run_for.resize(reader_.size());
    for (size_t s = 0; s < reader_.size(); ++s) {
      if (!repeats(s)) continue;
      saves[s] += costs_.nodes[schedule_.calls[s].node.at()].seconds;
      if (reader_[s] < 0 || !repeats(static_cast<size_t>(reader_[s]))) continue;
      const size_t reader = static_cast<size_t>(reader_[s]);
      saves[reader] += saves[s];
      run_for[reader].push_back(static_cast<int>(s));
    }
    for (Repetition& candidate : candidates) {
      candidate.saves = saves[static_cast<size_t>(candidate.call)];
    }
  }

  const Graph& graph_;
  const Costs& costs_;
  const Schedule& schedule_;
  const Buffers& buffers_;
  std::vector<int> current_;  // by value: its latest copy
  std::vector<int> holder_;   // by buffer: the copy that lies there
  std::vector<int> reader_;   // by call: the only call that reads what it makes
};

// A change of live bytes when a recomputation is left out.
struct Change {
  int first = 0;  // calls, inclusive; none if first > last
  int last = 0;
  Bytes bytes;  // below 0: gone
};

std::vector<Change> changes_without(const std::vector<Copy>& copies, const Repetition& repetition) {
  std::vector<Change> changes;
  const auto change = [&](int first, Bytes bytes) {
    if (first < repetition.call) changes.push_back({first, repetition.call - 1, bytes});
  };
  for (const int id : repetition.leave) {
    const Copy& copy = copies[static_cast<size_t>(id)];
    if (!copy.stays_longer) change(copy.before_last + 1, Bytes(-copy.bytes.count));
  }
  for (const int id : repetition.stay) {
    const Copy& copy = copies[static_cast<size_t>(id)];
    change(copy.end() + 1, copy.bytes);
  }
  return changes;
}

// By candidate: what it saves for what it takes. Bytes are dear at calls where the candidates want
// more of them than there are.
std::vector<double> worth_of(const Repetitions& all, const std::vector<Bytes>& live, Bytes limit,
                             double plentiful_price) {
  std::vector<double> wanted(live.size() + 1, 0);
  for (const Repetition& candidate : all.candidates) {
    for (const Change& change : changes_without(all.copies, candidate)) {
      if (change.bytes.count < 0) continue;
      wanted[static_cast<size_t>(change.first)] += static_cast<double>(change.bytes.count);
      wanted[static_cast<size_t>(change.last) + 1] -= static_cast<double>(change.bytes.count);
    }
  }
  std::vector<double> price_before(live.size() + 1, 0);  // sums
  double sum = 0;
  for (size_t s = 0; s < live.size(); ++s) {
    sum += wanted[s];
    const double room = static_cast<double>((limit - live[s]).count);
    price_before[s + 1] =
        price_before[s] + (sum > room ? sum / std::max(room, 1.0) : plentiful_price);
  }
  std::vector<double> worth;
  for (const Repetition& candidate : all.candidates) {
    double price = 0;
    for (const Change& change : changes_without(all.copies, candidate)) {
      price += static_cast<double>(change.bytes.count) *
               (price_before[static_cast<size_t>(change.last) + 1] -
                price_before[static_cast<size_t>(change.first)]);
    }
    worth.push_back(candidate.saves / std::max(price, 1e-9));
  }
  return worth;
}

// Makes the changes, unless more than the limit would live then.
bool change_within(LiveBytes& live, const std::vector<Change>& changes, Bytes limit) {
  Bytes gone;
  for (const Change& change : changes) gone += std::min(change.bytes, Bytes(0));
  const bool hopeless = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
    return change.bytes.count > 0 &&
           live.most(change.first, change.last) + change.bytes + gone > limit;
  });
  if (hopeless) return false;
  for (const Change& change : changes) live.add(change.first, change.last, change.bytes);
  const bool fits = std::all_of(changes.begin(), changes.end(), [&](const Change& change) {
    return change.bytes.count <= 0 || live.most(change.first, change.last) <= limit;
  });
  if (fits) return true;
  for (const Change& change : changes) {
    live.add(change.first, change.last, Bytes(-change.bytes.count));
  }
  return false;
}

// The schedule without those calls, and without repetitions that nobody reads.
Schedule without(const Graph& graph, const Schedule& schedule, const std::vector<bool>& left_out) {
  std::vector<bool> wanted(graph.values.size(), false);  // by value: the copy made before is read
  for (const ValueId result : graph.results) wanted[result.at()] = true;
  std::vector<Call> calls;  // last first
  for (size_t s = schedule.calls.size(); s-- > 0;) {
    const Call& call = schedule.calls[s];
    const Node& node = graph[call.node];
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId output) { return wanted[output.at()]; });
    if (left_out[s] || (call.recompute && !read)) continue;
    for (const ValueId output : node.outputs) wanted[output.at()] = false;
    for (const ValueId input : node.inputs) wanted[input.at()] = true;
    for (const ValueId target : node.accumulate) {
      if (target.valid()) wanted[target.at()] = true;
    }
    if (!is_update(node)) calls.push_back(call);
  }
  std::reverse(calls.begin(), calls.end());
  return place_updates(graph, calls);
}

// The recomputations to leave out: greedily, the most valuable first.
std::vector<bool> choose(const PlanRequest& request, const Schedule& schedule,
                         const Buffers& buffers, Bytes limit, const SearchLimits& limits) {
  Repetitions all(request, schedule, buffers);
  const std::vector<Bytes> by_step = live_by_call(buffers.uses);
  const std::vector<double> worth = worth_of(all, by_step, limit, limits.plentiful_price);
  std::vector<size_t> order(worth.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  LiveBytes live(by_step);
  std::vector<bool> left_out(schedule.calls.size(), false);
  std::vector<bool> pointless(schedule.calls.size(), false);  // run for what is left out
  std::vector<int> now_pointless;
  for (const size_t i : order) {
    const Repetition& candidate = all.candidates[i];
    const size_t call = static_cast<size_t>(candidate.call);
    if (pointless[call]) continue;
    if (!change_within(live, changes_without(all.copies, candidate), limit)) continue;
    left_out[call] = true;
    live.add(candidate.call, candidate.call, Bytes(-limit.count));  // no such call any more
    for (const int id : candidate.stay) all.copies[static_cast<size_t>(id)].stays_longer = true;
    for (const int id : candidate.leave) {
      Copy& copy = all.copies[static_cast<size_t>(id)];
      if (copy.stays_longer) continue;
      copy.last = copy.before_last;
      copy.lost = -1;
    }
    now_pointless = all.run_for[call];
    while (!now_pointless.empty()) {
      const size_t source = static_cast<size_t>(now_pointless.back());
      now_pointless.pop_back();
      if (pointless[source]) continue;
      pointless[source] = true;
      now_pointless.insert(now_pointless.end(), all.run_for[source].begin(),
                           all.run_for[source].end());
    }
  }
  return left_out;
}

}  // namespace

Schedule drop_redundant_recomputes(const PlanRequest& request, Schedule schedule, int percent_left,
                                   const SearchLimits& limits) {
  // A round makes room for the next, but hardly ever for much.
  const int rounds = schedule.calls.size() < limits.slack_long ? limits.slack_rounds : 1;
  const auto buffers_of = [&](const Schedule& of) {
    return assign_buffers(request.graph, of, request.costs, request.sharing, request.microbatches);
  };
  Buffers buffers = buffers_of(schedule);
  const Bytes peak = most_live(buffers.uses);
  const Bytes limit = peak - Bytes(peak.count / 100 * percent_left);
  for (int round = 0; round < rounds; ++round) {
    Schedule fuller =
        without(request.graph, schedule, choose(request, schedule, buffers, limit, limits));
    if (fuller.calls.size() == schedule.calls.size()) break;
    buffers = buffers_of(fuller);
    if (most_live(buffers.uses) > peak) break;
    schedule = std::move(fuller);
  }
  return schedule;
}

}  // namespace thimble
