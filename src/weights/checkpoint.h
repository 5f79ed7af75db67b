// Crash-safe checkpoints.
//
//   OUT/step-00001200/weights.safetensors     weights and running statistics; none frozen
//                     optimizer.safetensors   optimizer state
//                     state.json              position, recipe, data, sha256 of both files
//   OUT/latest -> step-00001200               swapped only when the folder is complete and on disk
//
// A run killed at any moment leaves `latest` pointing at a whole checkpoint (or absent).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "execute/program.h"

namespace thimble {

struct Position {
  int64_t step = 0;          // steps done
  nlohmann::json recipe;     // what must be equal for a run to continue
  nlohmann::json progress;   // what the report carries over (losses so far)
  nlohmann::json data = {};  // data/fingerprint.h; null: not known
  nlohmann::json base = {};  // of frozen weights (base_weights.h); null: none come from a file
};

// Writes a checkpoint, makes it the latest, then removes the ones before it, but that `keep` stay
// in all. On failure (UserError) the latest one is still the one before. Returns its folder. Of
// several ranks all call it, and the first writes; what they have parts of is written whole, so
// that any number of ranks can go on from it.
std::string save_checkpoint(const std::string& out, Program& program, const Position& position,
                            int64_t keep = 1);

// Removes what a run leaves that is killed while it saves: checkpoints before the latest, and parts
// of one. Without a latest checkpoint nothing is touched. REQUIRES: no other run uses the folder.
void remove_old_checkpoints(const std::string& out, int64_t keep = 1);

// The folders of all checkpoints that were kept, the latest first; none: there is no latest one.
std::vector<std::string> kept_checkpoints(const std::string& out);
// The file of a checkpoint's weights, its bytes checked. UserError when it is damaged.
std::string weights_of_checkpoint(const std::string& folder);
// Its record of the data (data/fingerprint.h); null: nothing.
nlohmann::json data_of_checkpoint(const std::string& folder);

// The folder of the latest checkpoint; empty when there is none.
std::optional<std::string> latest_checkpoint(const std::string& out);

// Where its frozen weights come from (base_weights.h); null: from no file.
nlohmann::json base_of_checkpoint(const std::string& folder);

// The recipe that a checkpoint was made with. UserError when it is damaged.
nlohmann::json recipe_of_checkpoint(const std::string& folder);

// Reads the position of a checkpoint, then its tensors into the program. UserError when it is
// damaged, or of another recipe than `recipe` or of other data than `data`; nothing is loaded then.
Position load_checkpoint(const std::string& folder, Program& program, const nlohmann::json& recipe,
                         const nlohmann::json& data = {});

// Reads weights and statistics alone, from a file as checkpoints have it. UserError when it holds
// another model.
void load_checkpoint_weights(const std::string& path, Program& program);

}  // namespace thimble
