// Normalisation of a loss over a whole step (ignored labels, masks): the factor is known only after
// all micro-batches and ranks. Their sums of loss and gradients are multiplied by it at the end.
#pragma once

#include "graph/builder.h"
#include "graph/loss_factor.h"
#include "transform/shard.h"

namespace thimble {

// f32 [1]: the factor from the sums over micro-batches and ranks to the loss. Its nodes are of the
// phase `per_microbatch`, or `epilogue` with several micro-batches, and not sorted yet
// (sort_by_phase).
ValueId add_loss_factor(Graph& graph, const LossFactor& factor, const RanksSpec& ranks,
                        bool several_microbatches);

}  // namespace thimble
