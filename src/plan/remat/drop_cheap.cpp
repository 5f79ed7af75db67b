// drop_cheap: keeps the results of costly ops (convolution, product) and computes cheap ones
// (normalisation, activation, pooling, cast) again, wherever what they are made from is at hand.
#include <algorithm>

#include "plan/policy.h"
#include "plan/recompute.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  // By value: can be had in the backward pass, kept or from something kept by cheap ops alone.
  std::vector<bool> at_hand(request.graph.values.size(), false);
  std::vector<bool> kept(request.graph.values.size(), false);
  for (size_t v = 0; v < at_hand.size(); ++v) at_hand[v] = !request.graph.values[v].producer.valid();
  for (const NodeId id : pass.nodes) {
    const Node& node = request.graph[id];
    const bool from_hand = std::all_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId input) { return at_hand[input.at()]; });
    const bool drop = node.op->recompute == Recompute::cheap && from_hand;
    for (const ValueId output : node.outputs) {
      // Small extras (statistics, indices) cost next to nothing to keep, a pass over memory to make.
      const Bytes bytes = request.graph[output].type.bytes();
      const bool small = !node.inputs.empty() && !node.op->view &&
                         bytes.count * 16 <= request.graph[node.inputs[0]].type.bytes().count;
      kept[output.at()] = (!drop || small) &&
                          (pass.read_backward[output.at()] || node.op->recompute == Recompute::cheap);
      at_hand[output.at()] = drop || kept[output.at()];
    }
  }
  return schedule_keeping(pass, kept);
}

}  // namespace

extern const Policy policy_drop_cheap;
const Policy policy_drop_cheap{"drop_cheap",
                               "keep convolutions and products, compute cheap ops again", schedule};

}  // namespace thimble
