// First values of a net that came as an ONNX file.
#pragma once

#include <string>

#include "execute/program.h"
#include "model/model.h"

namespace thimble {

// Sets every tensor of the model that the file has. UserError where it is another file by now.
void load_onnx_values(const std::string& path, Program& program, const ForeignNames& foreign);

}  // namespace thimble
