#include "select/bounds.h"

#include <algorithm>
#include <set>

#include "plan/schedule/recompute.h"

namespace thimble {
namespace {

// By value: the one whose bytes it lies in, through views and next versions.
std::vector<ValueId> bytes_owners(const Graph& graph) {
  const std::vector<ValueId> previous = previous_versions(graph);
  std::vector<ValueId> owner(graph.values.size());
  for (size_t v = 0; v < owner.size(); ++v) {
    if (!graph.values[v].producer.valid()) owner[v] = make_id<ValueId>(v);
  }
  for (const Node& node : graph.nodes) {
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      const ValueId before = node.op->view && k == 0 ? node.inputs[0] : previous[output.at()];
      owner[output.at()] = before.valid() ? owner[before.at()] : output;
    }
  }
  return owner;
}

}  // namespace

double each_seconds(const Step& step) {
  double seconds = 0;
  for (size_t n = 0; n < step.model.graph.nodes.size(); ++n) {
    if (step.model.graph.nodes[n].phase == Phase::per_microbatch)
      seconds += step.costs.nodes[n].seconds;
  }
  return seconds;
}

Bounds bounds_of(const Step& step, double last_saves) {
  const Graph& graph = step.model.graph;
  const PlanRequest request = step.request();
  Bounds bounds = {.without_recompute = cost_of(request, schedule_without_recompute(request))};
  bounds.without_recompute.seconds -= last_saves;
  const ForwardPass pass(graph);
  const std::vector<ValueId> owner = bytes_owners(graph);
  const auto size = [&](ValueId value) { return align_up(graph[value].type.bytes()); };
  const auto is_carried = [&](ValueId value) {
    const Value& v = graph[value];
    return v.producer.valid() && graph[v.producer].phase == Phase::prologue;
  };
  const auto stays = [&](ValueId value) {
    const Value& v = graph[value];
    return (!v.producer.valid() && is_persistent(v.role)) || is_carried(value);
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ValueId value = make_id<ValueId>(v);
    if (owner[v] != value || !stays(value)) continue;
    (is_carried(value) ? bounds.carried : bounds.persistent) += size(value);
  }
  // The call that needs most by itself.
  Bytes most;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->view) continue;
    Bytes needs = align_up(step.costs.nodes[n].workspace);
    std::set<ValueId> read;
    for (const ValueId input : node.inputs) {
      const ValueId bytes = owner[input.at()];
      if (!stays(bytes) && read.insert(bytes).second) needs += size(bytes);
    }
    const bool apart = node.op->in_place.empty() && node.op->updates.empty();
    for (const ValueId output : node.outputs) {
      if (apart && owner[output.at()] == output && !stays(output)) needs += size(output);
    }
    most = std::max(most, needs);
  }
  bounds.largest_call = bounds.persistent + bounds.carried + most;
  // Between the passes, a value that the backward pass reads is there, or is recomputed, once a micro-batch at
  // least.
  const int alike = request.microbatches - (last_saves > 0 ? 1 : 0);
  for (const NodeId id : pass.nodes) {
    const Node& node = graph[id];
    if (node.op->view || node.mark == Mark::recompute) continue;
    Bounds::Kept kept = {step.costs.nodes[id.at()].seconds * alike, {}};
    bool again = true;
    for (const ValueId output : node.outputs) {
      if (!pass.read_backward[output.at()] || owner[output.at()] != output) continue;
      kept.bytes += size(output);
      again = again && can_recompute(pass, output);
    }
    if (kept.bytes == Bytes()) continue;
    if (again) {
      bounds.kept.push_back(kept);
    } else {
      bounds.kept_always += kept.bytes;
    }
  }
  std::ranges::stable_sort(bounds.kept, {}, [](const Bounds::Kept& kept) {
    return kept.seconds / static_cast<double>(kept.bytes.count);
  });
  return bounds;
}

double Bounds::least_seconds(Bytes budget) const {
  Bytes all = persistent + carried + kept_always;
  for (const Kept& value : kept) all += value.bytes;
  double seconds = without_recompute.seconds;
  Bytes beyond = all > budget ? all - budget : Bytes();
  for (const Kept& value : kept) {
    if (beyond == Bytes()) return seconds;
    const Bytes dropped = std::min(beyond, value.bytes);
    seconds +=
        value.seconds * static_cast<double>(dropped.count) / static_cast<double>(value.bytes.count);
    beyond -= dropped;
  }
  return beyond == Bytes() ? seconds : kNever;
}

}  // namespace thimble
