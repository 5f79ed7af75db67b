// 8-bit optimizer state: u8 codes of the weight's shape, and one f32 scale for every block of them
// (base/number/dynamic_quantization.h).
#pragma once

#include <string>

#include "graph/builder.h"
#include "transform/optimizer.h"

namespace thimble {

struct BlockState {
  ValueId codes;
  ValueId scales;
};

// Whether the state of w is kept in 8 bits. Weights smaller than a block would gain nothing.
bool wants_8bit_state(const Builder& b, ValueId w, const OptimizerSpec& spec);

// Records the full tensor (Value::unsharded) of a state like `own`, which is w or this rank's shard
// of it.
void set_unsharded(Graph& graph, ValueId state, ValueId w, ValueId own);

// State like `own` that begins at zero. The codes have the name that f32 state would have.
BlockState add_block_state(Builder& b, ValueId w, ValueId own, const std::string& what);

// Folding (see transform/accumulate.h): the momentum that the gradients of a step are added into,
// under names that begin with `name`, and the addition of one gradient. Each addition rounds the
// momentum again.
BlockState add_fold_start(Builder& b, ValueId w, const OptimizerSpec& spec,
                          const std::string& name);
// The gradient is multiplied by `factor` if that is valid. A gradient that is gathered from sparse
// weights is added part by part, each at its gather's place.
BlockState add_folding(Builder& b, const BlockState& momentum, ValueId gradient, ValueId rng,
                       ValueId factor);

}  // namespace thimble
