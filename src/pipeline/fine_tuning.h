// Fine-tuning applied to a model's forward pass: adapters beside its linear layers (LoRA), frozen
// matrices in few bits.
#pragma once

#include "model/model.h"
#include "transform/fine_tuning.h"

namespace thimble {

// REQUIRES: no gradients yet. UserError where there is nothing to adapt, or nothing frozen.
void apply(const FineTuning& tuning, Model& model);

}  // namespace thimble
