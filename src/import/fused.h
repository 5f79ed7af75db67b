// The nodes of a net from outside that spell an op of ours become it (transform/fuse.h).
#pragma once

#include "model/model.h"

namespace thimble {

// Outputs that have become part of another node (logits of a vocabulary) are left out: a step is
// asked for its loss and its metrics. `on_gpu`: they are made for more rows at a time.
void fuse_model(Model& model, bool on_gpu = false);

}  // namespace thimble
