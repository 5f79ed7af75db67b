#include "plan/schedule/recompute.h"

#include <algorithm>

#include "base/error.h"
#include "plan/schedule/place_updates.h"

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
    const bool forward = !node.backward && !is_update(node) && node.phase == Phase::per_microbatch;
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
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (read_backward[v]) read_backward[bytes_of[v].at()] = true;
  }
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
  std::vector<Call> calls;
  const auto run_phase = [&](Phase phase) {
    for (const NodeId node : pass.backward) {
      if (pass.graph[node].phase != phase) continue;
      if (phase == Phase::per_microbatch) {
        for (const int at : replay(node)) {
          calls.push_back({pass.nodes[static_cast<size_t>(at)], true});
        }
      }
      calls.push_back({node, false});
    }
  };
  run_phase(Phase::prologue);
  for (const NodeId node : pass.nodes) calls.push_back({node, false});
  run_phase(Phase::per_microbatch);
  run_phase(Phase::epilogue);
  return place_updates(pass.graph, calls);
}

namespace {

// Calls of a schedule, at most. Policies that keep some values need far less. Where marks drop everything,
// each backward node repeats the forward pass from its start, and a deep net would fill the memory with
// the square of its nodes.
size_t most_calls(const Graph& graph) { return std::max(size_t{1} << 20, 16 * graph.nodes.size()); }

// Emits calls and knows which values are there.
class Replayer {
 public:
  explicit Replayer(const ForwardPass& pass)
      : pass_(pass),
        most_(most_calls(pass.graph)),
        available_(pass.graph.values.size(), false),
        wanted_(pass.size(), false),
        views_of_(pass.graph.values.size()) {
    for (size_t v = 0; v < available_.size(); ++v) {
      // Results of updates lie where they always lay, and place_updates sees to it that they are there.
      const NodeId producer = pass.graph.values[v].producer;
      available_[v] = !producer.valid() || is_update(pass.graph[producer]);
      const ValueId bytes = pass.bytes_of[v];
      if (bytes.at() != v) views_of_[bytes.at()].push_back(make_id<ValueId>(v));
    }
    emit_phase(Phase::prologue);
  }

  void emit(NodeId node, bool again = false) {
    user_check(calls_.size() < most_,
               "recomputation would take more than {} calls a step, since so little of the forward "
               "pass is kept; mark less with --recompute, or --keep some values on the way",
               most_);
    calls_.push_back({node, again});
    for (const ValueId output : pass_.graph[node].outputs) available_[output.at()] = true;
  }

  // A view whose bytes are gone is gone; the node that makes it costs nothing to run again.
  void drop(ValueId value) {
    available_[value.at()] = false;
    for (const ValueId view : views_of_[value.at()]) available_[view.at()] = false;
  }

  // Runs again what `node` reads and is not there, and what that needs, in forward order. Returns
  // the positions.
  std::vector<int> replay_for(NodeId node) {
    std::vector<int> replayed;
    std::vector<ValueId> missing;
    const auto look_at = [&](NodeId reader) {
      for (const ValueId input : pass_.graph[reader].inputs) {
        if (!available_[input.at()]) missing.push_back(input);
      }
    };
    look_at(node);
    while (!missing.empty()) {
      const ValueId value = missing.back();
      missing.pop_back();
      const int at = pass_.made_at(value);
      internal_check(at >= 0, "a backward value is needed before it is made");
      if (wanted_[static_cast<size_t>(at)]) continue;
      wanted_[static_cast<size_t>(at)] = true;
      replayed.push_back(at);
      look_at(pass_.nodes[static_cast<size_t>(at)]);
    }
    std::sort(replayed.begin(), replayed.end());
    for (const int at : replayed) {
      wanted_[static_cast<size_t>(at)] = false;
      emit(pass_.nodes[static_cast<size_t>(at)], true);
    }
    return replayed;
  }

  Schedule finish() {
    emit_phase(Phase::epilogue);
    return place_updates(pass_.graph, calls_);
  }

 private:
  void emit_phase(Phase phase) {
    for (const NodeId node : pass_.backward) {
      if (pass_.graph[node].phase == phase) emit(node);
    }
  }

  const ForwardPass& pass_;
  const size_t most_;
  std::vector<bool> available_;                 // by value
  std::vector<bool> wanted_;                    // by position; all false between calls
  std::vector<std::vector<ValueId>> views_of_;  // by value
  std::vector<Call> calls_;
};

}  // namespace

std::vector<NodeId> stages_of(const ForwardPass& pass) {
  std::vector<NodeId> stages = pass.nodes;
  for (const NodeId node : pass.backward) {
    if (pass.graph[node].phase == Phase::per_microbatch) stages.push_back(node);
  }
  return stages;
}

Schedule schedule_with(const ForwardPass& pass, Retention& retention) {
  const Graph& graph = pass.graph;
  const auto settle = [&](Replayer& replayer, ValueId value, bool decided) {
    const bool marked = graph[pass.maker(value)].mark == Mark::recompute;
    if (marked || !decided) replayer.drop(value);
  };
  Replayer replayer(pass);
  for (const NodeId node : pass.nodes) replayer.emit(node);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ValueId value = make_id<ValueId>(v);
    if (can_recompute(pass, value)) settle(replayer, value, retention.stays_after_forward(value));
  }
  for (const NodeId node : pass.backward) {
    if (graph[node].phase != Phase::per_microbatch) continue;
    const std::vector<int> replayed = replayer.replay_for(node);
    replayer.emit(node);
    if (replayed.empty()) continue;
    retention.replayed(replayed, node);
    const auto& reads = graph[node].inputs;
    for (const int at : replayed) {
      for (const ValueId output : graph[pass.nodes[static_cast<size_t>(at)]].outputs) {
        const bool read_now = std::find(reads.begin(), reads.end(), output) != reads.end();
        if (!read_now) settle(replayer, output, retention.stays_after_replay(output));
      }
    }
  }
  return replayer.finish();
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

Schedule schedule_dropping(const ForwardPass& pass, const Drops& drops) {
  Replayer replayer(pass);
  const std::vector<NodeId> stages = stages_of(pass);
  for (size_t s = 0; s < stages.size(); ++s) {
    replayer.replay_for(stages[s]);
    replayer.emit(stages[s]);
    for (const ValueId value : drops[s]) replayer.drop(value);
  }
  return replayer.finish();
}

Drops drops_of(const ForwardPass& pass, const Schedule& schedule) {
  Drops drops(stages_of(pass).size());
  std::vector<size_t> touched(pass.graph.values.size(), 0);  // by value: stage
  size_t stage = 0;
  for (const Call& call : schedule.calls) {
    const Node& node = pass.graph[call.node];
    if (is_update(node) || node.phase != Phase::per_microbatch) continue;
    for (const ValueId input : node.inputs) touched[pass.bytes_of[input.at()].at()] = stage;
    for (const ValueId output : node.outputs) {
      if (pass.bytes_of[output.at()] != output) continue;
      if (call.recompute) drops[touched[output.at()]].push_back(output);
      touched[output.at()] = stage;
    }
    if (!call.recompute) ++stage;
  }
  return drops;
}

Schedule schedule_without_recompute(const PlanRequest& request) {
  const std::vector<bool> everything(request.graph.values.size(), true);
  return schedule_keeping(ForwardPass(request.graph), everything);
}

}  // namespace thimble
