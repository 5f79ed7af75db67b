// Clipping by the global norm of the gradients. The norm must be known before the first update, so
// every gradient is kept until then, or computed twice.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"
#include "transform/loss_scale.h"

namespace thimble {

// f32 [1]: the factor, at most 1, that brings the norm of the valid gradients down to `max_norm`.
// With loss scaling, `unscaling` is the factor that undoes it, and the result includes it. With
// `in_parts` of several ranks, gradients are shards.
ValueId add_clip_factor(Builder& b, std::span<const ValueId> gradients, double max_norm,
                        ValueId unscaling = {}, const RanksSpec& in_parts = {});

// The gradient of the loss for a second backward pass: `loss_scale` times the factor that brings
// the gradients down to `max_norm`. Its node stands right after the gradients, none of which is
// needed after it. NaN if they overflowed, so that the gradients of the second pass overflow, too.
ValueId add_early_clip_factor(Graph& graph, std::vector<ValueId> gradients, double max_norm,
                              ValueId loss_scale, const LossScaling& scaling);

// The gradients times the factor, invalid ones left invalid.
std::vector<ValueId> scaled_by(Builder& b, std::span<const ValueId> gradients, ValueId factor);

}  // namespace thimble
