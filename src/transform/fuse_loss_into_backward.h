// Fuses a loss into its backward node. Some gradients also compute their forward node's results, to
// the same bits (OpDef::takes_over). In a training step the forward node is then redundant.
//
//   h ─▶ vocabulary_loss ─▶ loss, correct            h ┄┄┄┄┄┐
//   h ─▶ its gradient ─▶ dh, dweight       becomes   h ─▶ its gradient ─▶ dh, dweight, loss, correct
#pragma once

#include "graph/graph.h"

namespace thimble {

// Drops every such forward node whose results reach no backward node. Its gradient then makes these
// results. Nodes after it (sums of losses) become nodes of the backward pass, each right after
// the last of its inputs. Value ids do not change.
void fuse_loss_into_backward(Graph& graph);

}  // namespace thimble
