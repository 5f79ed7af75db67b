// A model as a run left it: its checkpoint, its recipe, and its weights in an arena.
#pragma once

#include <memory>
#include <string>

#include "pipeline/pipeline.h"
#include "pipeline/text_generation.h"
#include "train/bound_step.h"

namespace thimble {

// The checkpoint in a folder: that folder, or the latest of the run that it is. UserError where
// there is none.
std::string checkpoint_in(const std::string& folder);
// The recipe that it was trained by. UserError where it is damaged.
Recipe recipe_in(const std::string& checkpoint);

// A model to continue texts with: a run's folder or a checkpoint, or a model that comes with weights
// of its own ("hf:FOLDER").
struct TextModel {
  Recipe recipe;
  std::string checkpoint;  // empty: the weights are the model's own
};
TextModel text_model(const std::string& name);

// UserError unless the vocabulary of that digest, in that folder, is the one that the checkpoint
// was trained with, as far as either is known.
void check_vocabulary(const std::string& checkpoint, const std::string& digest,
                      const std::string& folder);

// Where a model's weights come from.
struct TrainedWeights {
  std::string checkpoint;  // empty: the model's own, of a net from outside
  std::string file;        // any that `--weights` takes, in place of the checkpoint's; empty: none
};
// Puts them into a program of the model. Returns a note on what was converted or left out.
std::string load_trained(const TrainedWeights& from, Program& program, const Model& model);

// The model of a step, with first values.
class ResidentModel {
 public:
  // REQUIRES: both outlive it.
  ResidentModel(const PlannedStep& first, Backend& backend, uint64_t seed);

  std::string load(const TrainedWeights& from) { return load_trained(from, program(), model()); }

  const Model& model() const { return first_.model; }
  Program& program() { return bound_->program(); }
  uint64_t seed() const { return seed_; }
  // Of another step in the same arena. REQUIRES: it outlives the result.
  BoundStep bind(const PlannedStep& variant) {
    return BoundStep(variant, first_, backend_, *arena_);
  }

 private:
  const PlannedStep& first_;
  Backend& backend_;
  const uint64_t seed_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<BoundStep> bound_;
};

// In the arena of training.
class TrainedModel : public ResidentModel {
 public:
  // REQUIRES: `planned` outlives it.
  explicit TrainedModel(PlannedTraining& planned)
      : ResidentModel(planned.full(), planned.backend(), planned.recipe.seed), planned_(planned) {}

  const PlannedTraining& planned() const { return planned_; }

 private:
  PlannedTraining& planned_;
};

}  // namespace thimble
