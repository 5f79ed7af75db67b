// Where frozen weights come from: checkpoints do not hold them, and name the file instead.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "execute/program.h"
#include "model/model.h"

namespace thimble {

bool has_frozen(const Graph& graph);

// The file by its path, size and sha256. An empty path, of weights that are drawn from the seed:
// null.
nlohmann::json describe_base(const std::string& path);

// Frozen weights as the checkpoint's run had them, which `described` says. The model's own first
// values are there already. UserError where the file is gone, or is another one.
void load_base(const nlohmann::json& described, const std::string& checkpoint, Program& program,
               const Model& model);

}  // namespace thimble
