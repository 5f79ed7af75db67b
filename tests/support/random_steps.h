// Random training steps: small graphs of every shape, with gradients and updates.
#pragma once

#include <cstdint>
#include <functional>

#include "graph/graph.h"
#include "support/tensor.h"

namespace thimble {

struct RandomStep {
  Graph graph;
  ValueId rng;
};

// A random forward graph over f32 [8,8], its gradients, and an update per weight.
RandomStep random_step(uint32_t seed);

// Hands `put` a tensor for every input of the graph. `rng` is the input that keys random numbers;
// invalid: there is none.
void fill_inputs(const Graph& graph, ValueId rng, uint64_t seed,
                 const std::function<void(ValueId, const Tensor&)>& put);

}  // namespace thimble
