// Reverse-mode differentiation: appends to a graph the nodes that compute gradients, using each
// op's own gradient function (OpDef::gradient).
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace thimble {

// A value to differentiate and the gradient that arrives at it.
struct GradientRoot {
  ValueId value;
  ValueId upstream;  // same type as value
};

// Appends backward nodes for `roots` and returns the gradient of each of `wrt` (invalid where no
// root depends on it). Contributions to one gradient are added in place, without a temporary,
// wherever the op that makes them can add into its output and nothing else still needs the sum.
// Gradients of weights, and of casts of weights that are given in their place, get the role
// `gradient`.
std::vector<ValueId> add_gradients(Graph& graph, std::span<const GradientRoot> roots,
                                   std::span<const ValueId> wrt);

}  // namespace thimble
