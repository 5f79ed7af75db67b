#include "transform/linear_layers.h"

#include <algorithm>

namespace thimble {

std::optional<ProductForm> product_of(const Node& node) {
  if (node.op->product == nullptr) return std::nullopt;
  return node.op->product(node.attrs, node.inputs.size());
}

bool makes_logits(const Graph& graph, const std::vector<std::vector<NodeId>>& readers,
                  ValueId value, ValueId logits) {
  if (value == logits) return true;
  return std::ranges::any_of(readers[value.at()], [&](NodeId reader) {
    const Node& node = graph[reader];
    const OpDef& op = *node.op;
    if (op.logits >= 0) return node.inputs[static_cast<size_t>(op.logits)] == value;
    const bool passes = op.view || op.casts || op.slices || op.sums != 0;
    return passes && makes_logits(graph, readers, node.outputs[0], logits);
  });
}

}  // namespace thimble
