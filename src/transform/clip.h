// Clipping by the norm of all gradients together: that norm must be known before the first update,
// so every gradient is kept until then, or computed twice.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"
#include "transform/loss_scale.h"

namespace thimble {

// f32 [1]: what brings the gradients that are valid down to `max_norm`, at most 1. Of a scaled
// loss, `unscaling` is what makes them gradients of the loss itself, and so does the result. Of several
// ranks, gradients are parts of them.
ValueId add_clip_factor(Builder& b, std::span<const ValueId> gradients, double max_norm,
                        ValueId unscaling = {}, const RanksSpec& in_parts = {});

// The gradient of the loss for a second backward pass: `loss_scale` times the factor that brings the
// gradients down to `max_norm`. Its node stands right behind the gradients, none of which is needed after
// it. Not a number where they overflowed, so that the gradients of the second pass do, too.
ValueId add_early_clip_factor(Graph& graph, std::vector<ValueId> gradients, double max_norm,
                              ValueId loss_scale, const LossScaling& scaling);

// The gradients (where valid) times the factor, in their place.
std::vector<ValueId> scaled_by(Builder& b, std::span<const ValueId> gradients, ValueId factor);

}  // namespace thimble
