#include "plan/recompute.h"

#include <algorithm>

#include "plan/place_updates.h"

namespace thimble {

ForwardPass::ForwardPass(const Graph& g)
    : graph(g),
      position(g.nodes.size(), -1),
      read_backward(g.values.size(), false),
      is_forward(g.values.size(), false),
      last_forward_reader(g.values.size(), -1),
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

Schedule schedule_replaying(const ForwardPass& pass, const ReplayBefore& replay) {
  std::vector<Step> steps;
  const auto run_phase = [&](Phase phase) {
    for (const NodeId node : pass.backward) {
      if (pass.graph[node].phase != phase) continue;
      if (phase == Phase::each) {
        for (const int at : replay(node)) {
          steps.push_back({pass.nodes[static_cast<size_t>(at)], true});
        }
      }
      steps.push_back({node, false});
    }
  };
  run_phase(Phase::begin);
  for (const NodeId node : pass.nodes) steps.push_back({node, false});
  run_phase(Phase::each);
  run_phase(Phase::end);
  return place_updates(pass.graph, steps);
}

namespace {

// Follows what is at hand through the backward pass, and names what has to be run again.
class Replayer {
 public:
  Replayer(const ForwardPass& pass, Retention& retention)
      : pass_(pass),
        retention_(retention),
        at_hand_(pass.graph.values.size(), true),
        wanted_(pass.size(), false) {
    for (size_t v = 0; v < at_hand_.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      if (can_recompute(pass, value)) {
        at_hand_[v] = keeps(value, retention.stays_after_forward(value));
      }
    }
    for (const NodeId node : pass.nodes) settle_view(node);
  }

  // What `reader` reads and is not there, and what that needs, in forward order.
  std::vector<int> before(NodeId reader) {
    const auto& reads = pass_.graph[reader].inputs;
    std::vector<int> replayed;
    std::vector<ValueId> missing;
    const auto miss = [&](const std::vector<ValueId>& values) {
      for (const ValueId value : values) {
        if (!at_hand_[value.at()]) missing.push_back(value);
      }
    };
    miss(reads);
    while (!missing.empty()) {
      const int at = pass_.made_at(missing.back());
      missing.pop_back();
      if (wanted_[static_cast<size_t>(at)]) continue;
      wanted_[static_cast<size_t>(at)] = true;
      replayed.push_back(at);
      miss(pass_.graph[pass_.nodes[static_cast<size_t>(at)]].inputs);
    }
    if (replayed.empty()) return replayed;
    std::sort(replayed.begin(), replayed.end());
    for (const int at : replayed) wanted_[static_cast<size_t>(at)] = false;
    retention_.replayed(replayed, reader);
    for (const int at : replayed) {
      const NodeId again = pass_.nodes[static_cast<size_t>(at)];
      for (const ValueId output : pass_.graph[again].outputs) {
        const bool read_now = std::find(reads.begin(), reads.end(), output) != reads.end();
        at_hand_[output.at()] = read_now || keeps(output, retention_.stays_after_replay(output));
      }
      settle_view(again);
    }
    return replayed;
  }

 private:
  bool keeps(ValueId value, bool decided) const {
    const Mark mark = pass_.graph[pass_.maker(value)].mark;
    if (mark == Mark::keep) return true;
    return mark != Mark::recompute && decided;
  }

  // A view whose bytes are gone is gone; the node that makes it costs nothing to run again.
  void settle_view(NodeId id) {
    const Node& node = pass_.graph[id];
    if (node.op->view && !at_hand_[node.inputs[0].at()]) at_hand_[node.outputs[0].at()] = false;
  }

  const ForwardPass& pass_;
  Retention& retention_;
  std::vector<bool> at_hand_;  // by value; what the forward pass does not make always is
  std::vector<bool> wanted_;   // by position; all false between calls
};

}  // namespace

Schedule schedule_with(const ForwardPass& pass, Retention& retention) {
  Replayer replayer(pass, retention);
  return schedule_replaying(pass, [&](NodeId reader) { return replayer.before(reader); });
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

Schedule schedule_once(const PlanRequest& request) {
  const std::vector<bool> everything(request.graph.values.size(), true);
  return schedule_keeping(ForwardPass(request.graph), everything);
}

}  // namespace thimble
