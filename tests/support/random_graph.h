// Random forward graphs in double over every differentiable op: the ops' own samples, composed, with
// values that have several readers, are read twice by one node, are seen through views, or are never
// used. Their use is in support/check_graph.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "autodiff/autodiff.h"
#include "graph/graph.h"
#include "support/tensor.h"

namespace thimble {

struct RandomGraph {
  uint64_t seed = 0;
  Graph graph;  // results: the loss, then what else comes out
  // The loss, f64 [1], whose upstream is a constant 1; perhaps values in the middle, whose upstreams
  // are inputs.
  std::vector<GradientRoot> roots;
  std::vector<ValueId> weights;   // leaves to differentiate
  std::vector<ValueId> wrt;       // weights, then perhaps values in the middle
  std::map<ValueId, Fill> fills;  // of weights and inputs
};

// The same seed gives the same graph on every machine.
RandomGraph random_graph(uint64_t seed);

// The contents of a leaf of the graph. A point is one draw of all of them; of one point, microbatches have
// the same weights and other inputs.
Tensor leaf(const RandomGraph& random, ValueId value, uint64_t point, int microbatch = 0);

// The samples that graphs are made of: every op with a gradient has one.
struct Ingredient {
  const OpDef* op = nullptr;
  Sample sample;                // its inputs in double
  std::vector<size_t> results;  // outputs that gradients flow back from
};
std::span<const Ingredient> ingredients();

}  // namespace thimble
