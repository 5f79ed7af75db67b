#include "plan/bytes/allocation_timeline.h"

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// One making of a value, and how long it is needed.
struct Copy {
  ValueId value;  // invalid: scratch
  Bytes at;
  Bytes size;
  int made = 0;
  int end = 0;
};

class Copies {
 public:
  Copies(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {
    const auto phase_of = [&](const PlannedCall& call) { return graph[call.node].phase; };
    const auto each = std::ranges::find(plan.calls, Phase::per_microbatch, phase_of);
    const auto end = std::ranges::find(plan.calls, Phase::epilogue, phase_of);
    microbatch_begin_ = static_cast<int>(each - plan.calls.begin());
    microbatch_end_ = static_cast<int>(end - plan.calls.begin());
  }

  std::vector<Copy> run() {
    current_.assign(graph_.values.size(), -1);
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (!graph_.values[v].producer.valid()) make(make_id<ValueId>(v), plan_.sources[v], 0);
    }
    const size_t sources = copies_.size();
    for (size_t s = 0; s < plan_.calls.size(); ++s) add_call(static_cast<int>(s));
    for (size_t c = 0; c < copies_.size(); ++c) lengthen(copies_[c], c < sources);
    for (const ValueId value : graph_.results) latest(value).end = last_call();
    return std::move(copies_);
  }

 private:
  int last_call() const { return static_cast<int>(plan_.calls.size()) - 1; }
  Copy& latest(ValueId value) { return copies_[static_cast<size_t>(current_[value.at()])]; }

  void make(ValueId value, Bytes at, int call) {
    current_[value.at()] = static_cast<int>(copies_.size());
    copies_.push_back({value, at, graph_[value].type.bytes(), call, call});
  }

  void add_call(int s) {
    const PlannedCall& call = plan_.calls[static_cast<size_t>(s)];
    const Node& node = graph_[call.node];
    for (const ValueId input : node.inputs) latest(input).end = s;
    for (const ValueId target : node.accumulate) {
      if (target.valid()) latest(target).end = s;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) make(node.outputs[k], call.outputs[k], s);
    if (call.workspace_size.count > 0) {
      copies_.push_back({ValueId{}, call.workspace_at, call.workspace_size, s, s});
    }
  }

  // Persistent values live all along. Inputs of the loop over micro-batches outlive the loop. Rows arrive
  // when `prologue` is through.
  void lengthen(Copy& copy, bool source) const {
    if (!copy.value.valid()) return;
    const Role role = graph_[copy.value].role;
    if (source && is_persistent(role)) copy.end = last_call();
    if (plan_.microbatches == 1) return;
    if (source && role == Role::input) {
      copy.end = std::max(copy.end, microbatch_begin_);
    } else if (copy.made < microbatch_begin_ && copy.end >= microbatch_begin_) {
      copy.end = std::max(copy.end, microbatch_end_ - 1);
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  int microbatch_begin_ = 0;
  int microbatch_end_ = 0;
  std::vector<Copy> copies_;
  std::vector<int> current_;  // by value: its latest copy
};

}  // namespace

const Occupant& Allocation::at_call(int call) const {
  auto it = occupants.rbegin();
  while (it + 1 != occupants.rend() && it->made > call) ++it;
  return *it;
}

std::vector<Allocation> allocations_of(const Graph& graph, const Plan& plan) {
  std::vector<Allocation> allocations;
  std::map<int64_t, size_t> at;  // by address: the latest allocation that begins there
  for (const Copy& copy : Copies(graph, plan).run()) {
    const Bytes size = align_up(copy.size);
    if (size.count == 0) continue;
    const auto [it, fresh] = at.try_emplace(copy.at.count, allocations.size());
    if (!fresh) {
      Allocation& before = allocations[it->second];
      if (before.size == size && before.last >= copy.made && copy.value.valid()) {
        before.occupants.push_back({copy.value, copy.made});
        before.last = std::max(before.last, copy.end);
        continue;
      }
      it->second = allocations.size();
    }
    const Role role = copy.value.valid() ? graph[copy.value].role : Role::workspace;
    allocations.push_back({copy.at, size, copy.made, copy.end, role, {{copy.value, copy.made}}});
  }
  return allocations;
}

}  // namespace thimble
