#include "plan/recompute.h"

#include <algorithm>

#include "base/error.h"
#include "plan/place_updates.h"

namespace thimble {

ForwardPass::ForwardPass(const Graph& g)
    : graph(g), position(g.nodes.size(), -1), read_backward(g.values.size(), false),
      is_forward(g.values.size(), false), last_forward_reader(g.values.size(), -1),
      bytes_of(g.values.size()) {
  for (size_t v = 0; v < g.values.size(); ++v) bytes_of[v] = make_id<ValueId>(v);
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    const NodeId id = make_id<NodeId>(n);
    const bool forward = !node.backward && !is_update(node) && node.phase == Phase::each;
    if (forward) {
      position[n] = static_cast<int>(nodes.size());
      nodes.push_back(id);
      for (const ValueId output : node.outputs) is_forward[output.at()] = true;
      if (node.op->view) bytes_of[node.outputs[0].at()] = bytes_of[node.inputs[0].at()];
      for (const ValueId input : node.inputs) last_forward_reader[input.at()] = position[n];
      continue;
    }
    if (!is_update(node)) backward.push_back(id);
    for (const ValueId input : node.inputs) read_backward[input.at()] = true;
  }
  for (const ValueId result : g.results) read_backward[result.at()] = true;
}

bool can_recompute(const ForwardPass& pass, ValueId value) {
  if (!pass.is_forward[value.at()]) return false;
  const Node& node = pass.graph[pass.maker(value)];
  if (node.op->recompute == Recompute::never || node.mark == Mark::keep) return false;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (node.added_into(k).valid()) return false;  // what it was added into is gone
  }
  const auto& results = pass.graph.results;
  return std::find(results.begin(), results.end(), value) == results.end();
}

namespace {

class Scheduler {
 public:
  Scheduler(const ForwardPass& pass, Retention& retention)
      : pass_(pass), retention_(retention), available_(pass.graph.values.size(), false),
        wanted_(pass.size(), false) {}

  Schedule run() {
    const Graph& graph = pass_.graph;
    for (size_t v = 0; v < graph.values.size(); ++v) {
      // What updates make lies where it always lay, and place_updates sees to it that it is there.
      const NodeId producer = graph.values[v].producer;
      available_[v] = !producer.valid() || is_update(graph[producer]);
    }
    emit_phase(Phase::begin);
    for (const NodeId node : pass_.nodes) emit(node, false);
    for (size_t v = 0; v < available_.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      if (can_recompute(pass_, value)) available_[v] = keeps(value, retention_.stays_after_forward(value));
    }
    for (const NodeId node : pass_.nodes) settle_view(node);
    for (const NodeId node : pass_.backward) {
      if (graph[node].phase != Phase::each) continue;
      replay_for(node);
      emit(node, false);
    }
    emit_phase(Phase::end);
    return place_updates(graph, steps_);
  }

 private:
  bool keeps(ValueId value, bool decided) const {
    const Mark mark = pass_.graph[pass_.maker(value)].mark;
    if (mark == Mark::keep) return true;
    return mark != Mark::recompute && decided;
  }

  void emit_phase(Phase phase) {
    for (const NodeId node : pass_.backward) {
      if (pass_.graph[node].phase == phase) emit(node, false);
    }
  }

  void emit(NodeId node, bool again) {
    steps_.push_back({node, again});
    for (const ValueId output : pass_.graph[node].outputs) available_[output.at()] = true;
  }

  // A view whose bytes are gone is gone; the node that makes it costs nothing to run again.
  void settle_view(NodeId id) {
    const Node& node = pass_.graph[id];
    if (node.op->view && !available_[node.inputs[0].at()]) available_[node.outputs[0].at()] = false;
  }

  // Runs again what `node` reads and is not there, and what that needs, in forward order.
  void replay_for(NodeId node) {
    std::vector<int> replayed;
    std::vector<ValueId> missing;
    for (const ValueId input : pass_.graph[node].inputs) {
      if (!available_[input.at()]) missing.push_back(input);
    }
    while (!missing.empty()) {
      const ValueId value = missing.back();
      missing.pop_back();
      const int at = pass_.made_at(value);
      internal_check(at >= 0, "a backward value is needed before it is made");
      if (wanted_[static_cast<size_t>(at)]) continue;
      wanted_[static_cast<size_t>(at)] = true;
      replayed.push_back(at);
      for (const ValueId input : pass_.graph[pass_.nodes[static_cast<size_t>(at)]].inputs) {
        if (!available_[input.at()]) missing.push_back(input);
      }
    }
    if (replayed.empty()) return;
    std::sort(replayed.begin(), replayed.end());
    for (const int at : replayed) {
      wanted_[static_cast<size_t>(at)] = false;
      emit(pass_.nodes[static_cast<size_t>(at)], true);
    }
    retention_.replayed(replayed, node);
    const auto& reads = pass_.graph[node].inputs;
    for (const int at : replayed) {
      const NodeId again = pass_.nodes[static_cast<size_t>(at)];
      for (const ValueId output : pass_.graph[again].outputs) {
        const bool read_now = std::find(reads.begin(), reads.end(), output) != reads.end();
        available_[output.at()] = read_now || keeps(output, retention_.stays_after_replay(output));
      }
      settle_view(again);
    }
  }

  const ForwardPass& pass_;
  Retention& retention_;
  std::vector<bool> available_;  // by value
  std::vector<bool> wanted_;     // by position; all false between calls
  std::vector<Step> steps_;
};

}  // namespace

Schedule schedule_with(const ForwardPass& pass, Retention& retention) {
  return Scheduler(pass, retention).run();
}

Schedule schedule_keeping(const ForwardPass& pass, const std::vector<bool>& kept) {
  class Kept final : public Retention {
   public:
    explicit Kept(const std::vector<bool>& values) : values_(values) {}
    bool stays_after_forward(ValueId value) override { return values_[value.at()]; }

   private:
    const std::vector<bool>& values_;
  };
  Kept retention(kept);
  return schedule_with(pass, retention);
}

}  // namespace thimble
