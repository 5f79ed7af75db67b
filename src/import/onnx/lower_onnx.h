// An ONNX graph, built as it is read: every node becomes nodes of the vocabulary
// (import/lowering.h), or numbers, where all that it reads is known.
#pragma once

#include "import/loss_parts.h"
#include "import/onnx/choices.h"
#include "import/onnx/onnx_model.h"
#include "model/model.h"

namespace thimble {

// UserError naming all that cannot be built. `parts` as in Lowering::build.
Model build_onnx(const OnnxModel& onnx, const ModelOptions& options, const OnnxChoices& choices,
                 const LossParts* parts = nullptr);

// The parts that its loss is made of.
LossParts loss_parts_of_onnx(const OnnxModel& onnx, const ModelOptions& options,
                             const OnnxChoices& choices);

}  // namespace thimble
