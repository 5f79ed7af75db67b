#include "plan/verify/verify_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/updates.h"

namespace thimble {
namespace {

// A range of bytes that holds one value whole, under every name it goes by (views share bytes).
struct Region {
  int64_t end = 0;
  std::set<ValueId> holds;
  int made = 0;                  // when it was written
  int last_read = 0;             // so far
  bool taken_over = false;       // written where an input of the same call lay
  Role role = Role::activation;  // of what first had these bytes
};

struct Fault {
  std::string what;
};

class Replay {
 public:
  Replay(const Graph& graph, const Costs& costs, const Plan& plan)
      : graph_(graph),
        costs_(costs),
        plan_(plan),
        times_run_(graph.nodes.size(), 0),
        last_place_(graph.values.size(), -1) {}

  void run() {
    check_shape();
    place_sources();
    const int count = static_cast<int>(plan_.calls.size());
    int s = 0;
    for (; s < count && phase(s) == Phase::prologue; ++s) call(s);
    const int each_begin = s;
    // A second turn of the loop sees whatever the first one left behind.
    const int turns = std::min(plan_.microbatches, 2);
    for (int turn = 0; turn < turns; ++turn) {
      if (turn > 0) carry();
      if (plan_.microbatches > 1) place_inputs();
      for (s = each_begin; s < count && phase(s) == Phase::per_microbatch; ++s) call(s);
    }
    for (; s < count && phase(s) == Phase::epilogue; ++s) call(s);
    if (s != count) fail("call {} runs in an earlier phase than the call before it", s);
    check_end();
    check_claims();
    check_costs();
  }

 private:
  template <class... Args>
  [[noreturn]] static void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw Fault{fmt::format(format, std::forward<Args>(args)...)};
  }

  Phase phase(int s) const { return graph_[plan_.calls[static_cast<size_t>(s)].node].phase; }
  int64_t size_of_value(ValueId value) const { return graph_[value].type.bytes().count; }

  void check_shape() const {
    if (plan_.sources.size() != graph_.values.size()) fail("the plan is for another graph");
    if (plan_.microbatches < 1) fail("the plan runs its loop {} times", plan_.microbatches);
    for (size_t s = 0; s < plan_.calls.size(); ++s) {
      const PlannedCall& call = plan_.calls[s];
      if (!call.node.valid() || call.node.at() >= graph_.nodes.size()) {
        fail("call {} runs a node that does not exist", s);
      }
      const Node& node = graph_[call.node];
      if (call.inputs.size() != node.inputs.size() || call.outputs.size() != node.outputs.size()) {
        fail("call {} ('{}') has another number of addresses than inputs and outputs", s,
             node.name);
      }
    }
  }

  void check_range(int64_t at, int64_t size, std::string_view what) {
    if (at < 0 || at % kArenaAlignment != 0) fail("{} lies at {}, which is not aligned", what, at);
    // Without adding: a plan from a file may hold any number.
    const int64_t room = plan_.arena.count;
    if (size > room || at > room - size) fail("{} ends beyond the arena", what);
    highest_ = std::max(highest_, align_up(Bytes(at + size)).count);
  }

  void place_sources() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      const int64_t at = plan_.sources[v].count;
      if (value.producer.valid()) {
        if (at != -1) fail("'{}' is computed but has a place at the start", value.name);
        continue;
      }
      check_range(at, value.type.bytes().count, value.name);
      put(make_id<ValueId>(v), at, now_, true);
      last_place_[v] = at;
    }
  }

  // The caller fills the inputs before every microbatch, but those that `epilogue` reads only once. Until
  // the first turn nobody else has their bytes.
  void place_inputs() {
    std::set<ValueId> read_at_end;
    for (const Node& node : graph_.nodes) {
      if (node.phase == Phase::epilogue) read_at_end.insert(node.inputs.begin(), node.inputs.end());
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      const ValueId id = make_id<ValueId>(v);
      if (value.producer.valid() || value.role != Role::input || read_at_end.count(id) != 0)
        continue;
      const int64_t at = plan_.sources[v].count;
      const auto it = regions_.find(at);
      const bool untouched = it != regions_.end() && it->second.holds.count(id) != 0;
      if (untouched && filled_.insert(id).second) {
        it->second.last_read = now_;
      } else {
        put(id, at, now_, false);
      }
    }
  }

  // A turn of the loop that makes the next version of an older value makes the next turn's older value: a
  // sum keeps growing where `prologue` zeroed it.
  void carry() {
    std::vector<ValueId> oldest(graph_.values.size());  // not made by the loop
    for (const Node& node : graph_.nodes) {
      for (size_t k = 0; k < node.outputs.size() && node.phase == Phase::per_microbatch; ++k) {
        const ValueId bound = node.op->view ? ValueId{} : bound_to(node, k);
        if (!bound.valid()) continue;
        const NodeId producer = graph_[bound].producer;
        const bool inside = producer.valid() && graph_[producer].phase == Phase::per_microbatch;
        oldest[node.outputs[k].at()] = inside ? oldest[bound.at()] : bound;
      }
    }
    for (auto& [at, region] : regions_) {
      std::set<ValueId> older;
      for (const ValueId value : region.holds) {
        if (oldest[value.at()].valid()) older.insert(oldest[value.at()]);
      }
      if (!older.empty()) region.holds = std::move(older);
    }
  }

  // Writes a value over whatever lay there. Sources must not lie over each other.
  Region& put(ValueId value, int64_t at, int when, bool must_be_free) {
    const int64_t end = at + align_up(Bytes(size_of_value(value))).count;
    clear(at, end, must_be_free, graph_[value].name);
    Region region;
    region.end = end;
    region.holds = {value};
    region.made = region.last_read = when;
    region.role = graph_[value].role;
    return regions_[at] = region;
  }

  void clear(int64_t at, int64_t end, bool must_be_free, std::string_view what) {
    auto it = regions_.lower_bound(at);
    if (it != regions_.begin() && std::prev(it)->second.end > at) --it;
    while (it != regions_.end() && it->first < end) {
      if (must_be_free) fail("'{}' lies over another value present at the start", what);
      retire(it->first, it->second);
      it = regions_.erase(it);
    }
  }

  Region& find(ValueId value, int64_t at, int s) {
    const auto it = regions_.find(at);
    if (it == regions_.end() || it->second.holds.count(value) == 0) {
      fail("call {} ('{}') reads '{}' at {}, which does not hold it", s, name(s),
           graph_[value].name, at);
    }
    return it->second;
  }

  std::string_view name(int s) const {
    return graph_[plan_.calls[static_cast<size_t>(s)].node].name;
  }

  // The input (or accumulation target) whose bytes output k has to share; invalid: none.
  ValueId bound_to(const Node& node, size_t k) const {
    for (const Alias& update : updates_of(node)) {
      if (update.output == static_cast<int>(k))
        return node.inputs[static_cast<size_t>(update.input)];
    }
    if (node.op->view && k == 0) return node.inputs[0];
    return node.added_into(k);
  }

  static bool overlap(int64_t a, int64_t a_size, int64_t b, int64_t b_size) {
    return a_size > 0 && b_size > 0 && a < b + b_size && b < a + a_size;
  }

  void call(int s) {
    const PlannedCall& planned = plan_.calls[static_cast<size_t>(s)];
    const Node& node = graph_[planned.node];
    const bool repeated = times_run_[planned.node.at()]++ > 0;
    const bool first_turn = seen_.insert(s).second;
    if (repeated && first_turn) {
      if (node.mark == Mark::keep)
        fail("call {} repeats '{}', which is marked to be kept", s, node.name);
      if (node.op->recompute == Recompute::never) fail("call {} repeats '{}'", s, node.name);
      if (!planned.recompute) fail("call {} repeats '{}' without saying so", s, node.name);
    }
    if (!repeated && planned.recompute) fail("call {} claims to repeat '{}'", s, node.name);

    for (size_t i = 0; i < node.inputs.size(); ++i) {
      find(node.inputs[i], planned.inputs[i].count, s).last_read = now_;
    }
    if (planned.workspace_size < costs_.nodes[planned.node.at()].workspace) {
      fail("call {} ('{}') has too little scratch", s, node.name);
    }
    if (planned.workspace_size.count > 0) {
      check_range(planned.workspace_at.count, planned.workspace_size.count, "scratch");
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      check_range(planned.outputs[k].count, size_of_value(node.outputs[k]),
                  graph_[node.outputs[k]].name);
    }
    check_overlaps(s, planned, node);

    // The versions that the outputs must continue, read before anything is written.
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId bound = bound_to(node, k);
      if (bound.valid()) find(bound, planned.outputs[k].count, s).last_read = now_;
    }
    if (planned.workspace_size.count > 0) {
      clear(planned.workspace_at.count,
            planned.workspace_at.count + align_up(planned.workspace_size).count, false, "");
      usage_.push_back({now_, now_, align_up(planned.workspace_size).count, Role::workspace});
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const int64_t at = planned.outputs[k].count;
      last_place_[node.outputs[k].at()] = at;
      if (node.op->view && k == 0) {
        regions_.at(at).holds.insert(node.outputs[k]);
        continue;
      }
      bool takes_over = bound_to(node, k).valid();
      for (const Bytes input : planned.inputs) takes_over |= input.count == at;
      const Role before = takes_over ? regions_.at(at).role : graph_[node.outputs[k]].role;
      Region& region = put(node.outputs[k], at, now_, false);
      region.taken_over = takes_over;
      region.role = before;
    }
    ++now_;
    call_at_.push_back(s);
  }

  // An output may lie over an input only exactly, and only where the op allows it. Scratch lies over nothing,
  // and outputs do not overlap.
  void check_overlaps(int s, const PlannedCall& planned, const Node& node) const {
    const int64_t scratch = planned.workspace_size.count;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const int64_t at = planned.outputs[k].count;
      const int64_t size = size_of_value(node.outputs[k]);
      if (overlap(at, size, planned.workspace_at.count, scratch)) {
        fail("call {} ('{}'): scratch lies over an output", s, node.name);
      }
      for (size_t j = 0; j < k; ++j) {
        if (overlap(at, size, planned.outputs[j].count, size_of_value(node.outputs[j]))) {
          fail("call {} ('{}'): two outputs overlap", s, node.name);
        }
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const int64_t input = planned.inputs[i].count;
        if (!overlap(at, size, input, size_of_value(node.inputs[i]))) continue;
        const auto listed = [&](std::span<const Alias> aliases) {
          return std::any_of(aliases.begin(), aliases.end(), [&](const Alias& a) {
            return a.output == static_cast<int>(k) && a.input == static_cast<int>(i);
          });
        };
        const bool allowed = listed(node.op->in_place) || listed(updates_of(node)) ||
                             (node.op->view && k == 0 && i == 0);
        if (!allowed || input != at || size != size_of_value(node.inputs[i])) {
          fail("call {} ('{}') writes over input {} while reading it", s, node.name, i);
        }
      }
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (overlap(planned.inputs[i].count, size_of_value(node.inputs[i]),
                  planned.workspace_at.count, scratch)) {
        fail("call {} ('{}'): scratch lies over an input", s, node.name);
      }
    }
  }

  void check_end() {
    const int last = now_ - 1;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!graph_.nodes[n].op->updates.empty() && times_run_[n] == 0) {
        fail("'{}' never runs", graph_.nodes[n].name);
      }
    }
    std::set<ValueId> finals;
    std::vector<ValueId> root(graph_.values.size());
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      if (!value.producer.valid() && is_persistent(value.role)) root[v] = make_id<ValueId>(v);
    }
    std::vector<ValueId> newest = root;  // by root: its final version
    for (const Node& node : graph_.nodes) {
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const ValueId bound = node.op->view ? ValueId{} : bound_to(node, k);
        if (!bound.valid() || !root[bound.at()].valid()) continue;
        root[node.outputs[k].at()] = root[bound.at()];
        newest[root[bound.at()].at()] = node.outputs[k];
      }
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].producer.valid() || !newest[v].valid()) continue;
      const auto it = regions_.find(plan_.sources[v].count);
      if (it == regions_.end() || it->second.holds.count(newest[v]) == 0) {
        fail("'{}' is not in its place at the end of the step", graph_.values[v].name);
      }
      it->second.last_read = last;
    }
    for (const ValueId result : graph_.results) {
      // The caller looks where it was put last; an older copy elsewhere may be whole as well.
      const auto it = regions_.find(last_place_[result.at()]);
      if (it == regions_.end() || it->second.holds.count(result) == 0) {
        fail("result '{}' is gone at the end", graph_[result].name);
      }
      it->second.last_read = last;
    }
  }

  struct Usage {
    int first, last;
    int64_t bytes;
    Role role;
  };

  // Records for how long a region's bytes were in use. At the call where an output takes over the
  // bytes of an input, they are the input's.
  void retire(int64_t at, const Region& region) {
    const int first = region.made + (region.taken_over ? 1 : 0);
    if (first <= region.last_read)
      usage_.push_back({first, region.last_read, region.end - at, region.role});
  }

  void check_claims() {
    for (const auto& [at, region] : regions_) retire(at, region);
    if (highest_ != plan_.arena.count) {
      fail("the plan claims an arena of {} bytes and uses {}", plan_.arena.count, highest_);
    }
    check_peak();
  }

  // The first call of the largest sum, and what that is made of.
  void check_peak() const {
    std::vector<int64_t> change(static_cast<size_t>(now_) + 1, 0);
    for (const Usage& usage : usage_) {
      change[static_cast<size_t>(usage.first)] += usage.bytes;
      change[static_cast<size_t>(usage.last) + 1] -= usage.bytes;
    }
    int64_t live = 0;
    int64_t peak = 0;
    int peak_call = 0;
    int peak_time = 0;
    for (size_t t = 0; t < call_at_.size(); ++t) {
      live += change[t];
      if (live < peak || (live == peak && call_at_[t] >= peak_call)) continue;
      peak = live;
      peak_call = call_at_[t];
      peak_time = static_cast<int>(t);
    }
    if (peak != plan_.peak_live.count) {
      fail("the plan claims a live peak of {} bytes, the replay finds {}", plan_.peak_live.count,
           peak);
    }
    if (peak_call != plan_.peak_call) {
      fail("the plan claims its live peak at call {}, the replay finds it at {}", plan_.peak_call,
           peak_call);
    }
    std::array<int64_t, kRoles> by_role{};
    for (const Usage& usage : usage_) {
      if (usage.first > peak_time || usage.last < peak_time) continue;
      by_role[static_cast<size_t>(usage.role)] += usage.bytes;
    }
    for (size_t r = 0; r < by_role.size(); ++r) {
      if (by_role[r] == plan_.peak_by_role[r].count) continue;
      fail("the plan claims {} bytes of {} at its peak, the replay finds {}",
           plan_.peak_by_role[r].count, name_of(static_cast<Role>(r)), by_role[r]);
    }
  }

  // The costs of the calls. Seconds are compared only if they were predicted from these costs.
  void check_costs() const {
    double seconds = 0, flops = 0, extra_flops = 0;
    for (const PlannedCall& call : plan_.calls) {
      const NodeCost& cost = costs_.nodes[call.node.at()];
      const int times = graph_[call.node].phase == Phase::per_microbatch ? plan_.microbatches : 1;
      seconds += times * cost.seconds;
      flops += times * cost.flops;
      if (call.recompute) extra_flops += times * cost.flops;
    }
    const auto compare = [](std::string_view what, double claimed, double found) {
      constexpr double kRounding = 1e-9;  // sums of thousands of terms, in whatever order
      if (std::abs(claimed - found) <= kRounding * std::abs(found)) return;
      fail("the plan claims {} {}, its calls add up to {}", claimed, what, found);
    };
    compare("FLOPs", plan_.flops, flops);
    compare("FLOPs of recomputation", plan_.extra_flops, extra_flops);
    if (plan_.costs == costs_.source) compare("seconds", plan_.predicted_seconds, seconds);
  }

  const Graph& graph_;
  const Costs& costs_;
  const Plan& plan_;
  int now_ = 0;                        // calls replayed, every turn of the loop counted
  std::vector<int> call_at_;           // by that count: which call of the plan
  std::vector<int> times_run_;         // by node
  std::set<int> seen_;                 // calls replayed at least once
  std::set<ValueId> filled_;           // inputs filled for a first turn
  std::vector<int64_t> last_place_;    // by value: the address of its latest copy
  std::map<int64_t, Region> regions_;  // by address
  std::vector<Usage> usage_;
  int64_t highest_ = 0;
};

}  // namespace

std::optional<std::string> find_fault(const Graph& graph, const Costs& costs, const Plan& plan) {
  try {
    Replay(graph, costs, plan).run();
  } catch (const Fault& fault) {
    return fault.what;
  }
  return std::nullopt;
}

void verify_plan(const Graph& graph, const Costs& costs, const Plan& plan) {
  const std::optional<std::string> fault = find_fault(graph, costs, plan);
  internal_check(!fault.has_value(), "the plan is unsound: " + fault.value_or(""));
}

}  // namespace thimble
