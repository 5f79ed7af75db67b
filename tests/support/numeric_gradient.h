// Gradients of random graphs against central differences of the forward pass, in double and through the
// reference kernels: the oracle shares nothing with autodiff but the kernels of forward nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "support/random_graph.h"

namespace thimble {

struct Judgement {
  enum class Verdict : uint8_t {
    right,
    wrong,
    unsettled,  // at every point that was tried, some difference depended on the length of its step
  } verdict = Verdict::right;
  std::string what = {};  // of a wrong one: which tensor, and both numbers
};

// Judges `gradients`, of random.wrt, in `step`, which has the forward graph's values and nodes first.
// Every tensor is moved by itself, in a random direction, so that a right one hides no wrong one.
Judgement judge_gradients(const RandomGraph& random, const Graph& step,
                          std::span<const ValueId> gradients);

// Runs `step`, a graph that begins with the values of random.graph, once, from the leaves of a point.
std::vector<Tensor> run_once(const RandomGraph& random, const Graph& step, uint64_t point,
                             int microbatch = 0);

}  // namespace thimble
