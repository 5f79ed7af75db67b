// Where frozen weights come from: checkpoints do not hold them, and name the file instead.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "execute/program.h"
#include "model/model.h"

namespace thimble {

bool has_frozen(const Graph& graph);

// The file by its path, size and sha256; of an index, its shards as well. Null of an empty path:
// weights that are drawn from the seed.
nlohmann::json describe_base(const std::string& path);

// The path of what is described. UserError naming the file that is gone, or is another one.
std::string base_file(const nlohmann::json& described, const std::string& checkpoint);

// Frozen weights as the checkpoint's run had them, which `described` says. The model's own first
// values are there already. UserError where the file is gone, or is another one.
void load_base(const nlohmann::json& described, const std::string& checkpoint, Program& program,
               const Model& model);

}  // namespace thimble
