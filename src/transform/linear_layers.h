// Linear layers of a graph, for passes that change them: products with a matrix, and logits.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace thimble {

// None: the node is no product with a matrix.
std::optional<ProductForm> product_of(const Node& node);

// Whether a loss takes the softmax of the value, also through views, casts, parts and additions.
// `logits`: a value that is some, though no loss reads it.
bool makes_logits(const Graph& graph, const std::vector<std::vector<NodeId>>& readers,
                  ValueId value, ValueId logits);

}  // namespace thimble
