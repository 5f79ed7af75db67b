// The weight of a loss that is known only once all parts of a step have been counted (labels that
// do not count, masks): the parts' sums of loss and gradients are divided by it at the end.
#pragma once

#include "graph/builder.h"
#include "graph/loss_factor.h"
#include "transform/shard.h"

namespace thimble {

// f32 [1], behind the last part: what brings the sums over all parts to those of the loss. Nodes of
// the phase `per_microbatch`, or `epilogue` of several micro-batches, and not in their places yet.
ValueId add_loss_factor(Graph& graph, const LossFactor& factor, const RanksSpec& ranks,
                        bool several_microbatches);

}  // namespace thimble
