// Optimizer state in one byte a number: u8 codes of the weight's shape, and one f32 scale for every
// block of them (base/number/dynamic_quantization.h).
#pragma once

#include <string>

#include "graph/builder.h"
#include "transform/optimizer.h"

namespace thimble {

struct BlockState {
  ValueId codes;
  ValueId scales;
};

// Whether the state of w is kept so. Weights smaller than a block would gain nothing by it.
bool wants_8bit_state(const Builder& b, ValueId w, const OptimizerSpec& spec);

// Notes of a state like `own`, which is w or this rank's part of it, what it is a part of.
void set_whole(Graph& graph, ValueId state, ValueId w, ValueId own);

// State like `own` that begins at zero. The codes have the name that f32 state would have.
BlockState add_block_state(Builder& b, ValueId w, ValueId own, const std::string& what);

// Folding (see transform/accumulate.h): what the gradients of a step are added into, under names
// that begin with `name`, and one gradient added to it. Its numbers are rounded anew with each
// gradient.
BlockState add_fold_start(Builder& b, ValueId w, const OptimizerSpec& spec,
                          const std::string& name);
// `factor` is what the gradient is multiplied by; invalid: as it is. Where the gradient is gathered
// from sparse weights, each part of it goes into the momentum by itself, at its gather's place.
BlockState add_folding(Builder& b, const BlockState& momentum, ValueId gradient, ValueId rng,
                       ValueId factor);

}  // namespace thimble
