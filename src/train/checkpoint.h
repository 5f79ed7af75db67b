// Crash-safe checkpoints.
//
//   OUT/step-00001200/weights.safetensors     weights and running statistics
//                     optimizer.safetensors   optimizer state
//                     state.json              position, recipe, sha256 of both files
//   OUT/latest -> step-00001200               swapped only when the folder is complete and on disk
//
// A run killed at any moment leaves `latest` pointing at a whole checkpoint (or absent).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "execute/program.h"

namespace thimble {

struct Position {
  int64_t step = 0;         // steps done
  nlohmann::json recipe;    // what must be equal for a run to continue
  nlohmann::json progress;  // what the report carries over (losses so far)
};

// Writes a checkpoint, makes it the latest, then removes the ones before it. On failure (UserError)
// the latest one is still the one before. Returns its folder.
std::string save_checkpoint(const std::string& out, Program& program, const Position& position);

// The folder of the latest checkpoint; empty when there is none.
std::optional<std::string> latest_checkpoint(const std::string& out);

// The recipe that a checkpoint was made with. UserError when it is damaged.
nlohmann::json recipe_of_checkpoint(const std::string& folder);

// Reads the position of a checkpoint, then its tensors into the program. UserError when it is
// damaged, or of another recipe than `recipe`; nothing is loaded then.
Position load_checkpoint(const std::string& folder, Program& program, const nlohmann::json& recipe);

// Loads weights (and, where present, statistics) from any safetensors file that holds this model's.
// Sparse weights take what lies at their nonzeros.
void load_weights(const std::string& path, Program& program);

// Weights and statistics as one safetensors file, sparse weights in full.
void save_weights(const std::string& path, Program& program);

// Over names, types and bytes of all weights and statistics, in graph order, sparse weights in
// full.
std::string weights_sha256(Program& program);

}  // namespace thimble
