// Clipping by the norm of all gradients together: that norm must be known before the first update,
// so every gradient is kept until then, or computed twice.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"

namespace thimble {

// f32 [1]: what brings the gradients that are valid down to `max_norm`, at most 1.
ValueId add_clip_factor(Builder& b, std::span<const ValueId> gradients, double max_norm);

// The same right behind the gradients, none of which is then needed any longer.
ValueId add_early_clip_factor(Graph& graph, std::vector<ValueId> gradients, double max_norm);

// The gradients (where valid) times the factor, in their place.
std::vector<ValueId> scaled_by(Builder& b, std::span<const ValueId> gradients, ValueId factor);

}  // namespace thimble
