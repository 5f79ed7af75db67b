// Entrances, weights and the one exit of an ONNX graph that a loss is of.
#pragma once

#include <string>
#include <vector>

#include "import/net.h"
#include "import/onnx/choices.h"
#include "import/onnx/onnx_model.h"

namespace thimble {

// The output that the loss is of: the one that was named, else the first of real numbers.
const OnnxEnd& end_of_loss(const OnnxModel& onnx, const OnnxChoices& choices);

// The nodes that the value depends on, in their order.
std::vector<OnnxNode> nodes_towards(const std::vector<OnnxNode>& nodes, const std::string& value);

// Rows of a batch, where the file or the caller says so; 0: neither does.
int64_t usual_rows(const OnnxModel& onnx, const OnnxChoices& choices);

// The axes of an input, for so many rows. UserError where one of them is open.
Extents extents_of(const OnnxModel& onnx, const OnnxEnd& input, const OnnxChoices& choices);

// Of an input that is one number everywhere: as the file has them, and open ones in front are rows.
Extents extents_of_fixed(const OnnxModel& onnx, const OnnxEnd& input, const OnnxChoices& choices);

// Entrances of the nodes: inputs that are fed, and a float tensor of the file by itself is a
// parameter.
Net ends_of(const OnnxModel& onnx, const std::vector<OnnxNode>& nodes, const OnnxChoices& choices);

}  // namespace thimble
