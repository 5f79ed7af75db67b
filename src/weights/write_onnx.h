// A trained net back in the ONNX file that it came from.
#pragma once

#include <string>

#include "execute/program.h"
#include "model/model.h"

namespace thimble {

// Writes the file of `model.first_values` with the program's weights and statistics in place of its own, for
// inference: norms with their statistics, nothing dropped. Tensors of other files come into this one. UserError
// where the net is of no such file, or a weight of it is no tensor there. Of several ranks the first writes.
void write_onnx(const std::string& path, Program& program, const Model& model);

}  // namespace thimble
