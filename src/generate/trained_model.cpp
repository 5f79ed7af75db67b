#include "generate/trained_model.h"

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/nearest_path.h"
#include "recipe/settings.h"
#include "weights/base_weights.h"
#include "weights/checkpoint.h"
#include "weights/weights_file.h"

namespace thimble {

std::string checkpoint_in(const std::string& folder) {
  if (exists(folder + "/state.json")) return folder;
  const auto latest = latest_checkpoint(folder);
  user_check(latest.has_value(),
             "there is no checkpoint in '{}'; name the --out of a run, or a checkpoint in it{}",
             folder, nearest_path_clause(folder));
  return *latest;
}

Recipe recipe_in(const std::string& checkpoint) {
  return recipe_from_json(recipe_of_checkpoint(checkpoint), "'" + checkpoint + "'");
}

TextModel text_model(const std::string& name) {
  TextModel found;
  if (name.starts_with("hf:")) {
    found.recipe.model.name = name;
  } else {
    found.checkpoint = checkpoint_in(name);
    found.recipe = recipe_in(found.checkpoint);
  }
  return found;
}

void check_vocabulary(const std::string& checkpoint, const std::string& digest,
                      const std::string& folder) {
  const nlohmann::json data = data_of_checkpoint(checkpoint);
  const std::string trained = data.is_object() ? data.value("vocabulary_sha256", "") : "";
  user_check(trained.empty() || digest.empty() || trained == digest,
             "the vocabularies in '{}' are not those that '{}' was trained with; name their folder "
             "with --data-dir",
             folder, checkpoint);
}

std::string load_trained(const TrainedWeights& from, Program& program, const Model& model) {
  if (!from.file.empty()) return load_weights(from.file, program, model.foreign);
  if (from.checkpoint.empty()) return "";
  load_base(base_of_checkpoint(from.checkpoint), from.checkpoint, program, model);
  load_checkpoint_weights(weights_of_checkpoint(from.checkpoint), program);
  return "";
}

ResidentModel::ResidentModel(const PlannedStep& first, Backend& backend, uint64_t seed)
    : first_(first),
      backend_(backend),
      seed_(seed),
      arena_(backend.allocate(first.plan.arena)),
      bound_(std::make_unique<BoundStep>(first, first, backend, *arena_)) {
  set_first_values(program(), model(), seed);
}

}  // namespace thimble
