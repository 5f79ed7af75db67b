// Gradients that make what their forward nodes make (OpDef::takes_over), to the same bits: where the
// backward pass is sure to follow, the forward nodes are work for nothing.
//
//   h ─▶ vocabulary_loss ─▶ loss, correct            h ┄┄┄┄┄┐
//   h ─▶ its gradient ─▶ dh, dweight       becomes   h ─▶ its gradient ─▶ dh, dweight, loss, correct
#pragma once

#include "graph/graph.h"

namespace thimble {

// Drops every such forward node whose results reach no backward node, and makes its gradient give
// them. Nodes behind it (sums of losses) become nodes of the backward pass, each right behind the
// last of what it reads. Values stay who they are.
void fuse_loss_into_backward(Graph& graph);

}  // namespace thimble
