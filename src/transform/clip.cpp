#include "transform/clip.h"

#include <algorithm>

#include "graph/order.h"

namespace thimble {

ValueId add_clip_factor(Builder& b, std::span<const ValueId> gradients, double max_norm,
                        ValueId unscaling, const RanksSpec& in_parts) {
  ValueId squares;
  for (const ValueId gradient : gradients) {
    if (!gradient.valid()) continue;
    squares = b.accumulate("sum_of_squares", {gradient}, {}, {squares}).front();
  }
  if (in_parts.several()) squares = add_sum_over_ranks(b, squares, in_parts);
  std::vector<ValueId> inputs = {squares};
  if (unscaling.valid()) inputs.push_back(unscaling);
  return b.op("clip_factor", std::move(inputs), {{"max_norm", max_norm}});
}

ValueId add_early_clip_factor(Graph& graph, std::vector<ValueId> gradients, double max_norm,
                              ValueId loss_scale, const LossScaling& scaling) {
  std::erase_if(gradients, [](ValueId gradient) { return !gradient.valid(); });
  std::sort(gradients.begin(), gradients.end(),
            [&](ValueId a, ValueId b) { return graph[a].producer.at() < graph[b].producer.at(); });
  const size_t first = graph.nodes.size();
  Builder b(graph);
  b.set_backward(true);
  const ValueId unscaling = add_unscaling(b, loss_scale, {}, scaling).factor;
  ValueId factor = add_clip_factor(b, gradients, max_norm, unscaling);
  if (unscaling.valid()) {  // divided by the scale: back to what that was, and then scaled
    for (int i = 0; i < 2; ++i) factor = b.op("mul", {factor, loss_scale});
  }
  hoist_nodes(graph, first);
  return factor;
}

std::vector<ValueId> scaled_by(Builder& b, std::span<const ValueId> gradients, ValueId factor) {
  std::vector<ValueId> scaled;
  for (const ValueId gradient : gradients) {
    scaled.push_back(gradient.valid() ? b.op("scale_by", {gradient, factor}) : ValueId{});
    if (gradient.valid()) b.graph()[scaled.back()].role = b.graph()[gradient].role;
  }
  return scaled;
}

}  // namespace thimble
