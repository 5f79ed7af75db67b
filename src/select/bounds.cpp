#include "select/bounds.h"

#include <algorithm>

#include "plan/bytes/least_bytes.h"
#include "plan/schedule/recompute.h"

namespace thimble {

double microbatch_seconds(const Step& step) {
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
  const LeastBytes least = least_bytes(graph, step.costs);
  bounds.persistent = least.persistent;
  bounds.carried = least.carried;
  bounds.largest_call = least.largest_call;
  bounds.least = least.all;
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
