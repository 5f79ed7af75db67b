// A model as a run left it: its checkpoint, its recipe, and its weights in an arena like that of
// training.
#pragma once

#include <memory>
#include <string>

#include "pipeline/pipeline.h"
#include "train/bound_step.h"

namespace thimble {

// The checkpoint in a folder: that folder, or the latest of the run that it is. UserError where
// there is none.
std::string checkpoint_in(const std::string& folder);
// The recipe that it was trained by. UserError where it is damaged.
Recipe recipe_in(const std::string& checkpoint);

// UserError unless the vocabulary of that digest, in that folder, is the one that the checkpoint
// was trained with, as far as either is known.
void check_vocabulary(const std::string& checkpoint, const std::string& digest,
                      const std::string& folder);

class TrainedModel {
 public:
  // REQUIRES: `planned` outlives it.
  explicit TrainedModel(PlannedTraining& planned);

  // From a checkpoint's weights; from any file that `--weights` takes.
  void load_checkpoint(const std::string& checkpoint);
  std::string load_file(const std::string& path);

  const PlannedTraining& planned() const { return planned_; }
  const Model& model() const { return planned_.full().model; }
  Program& program() { return trained_->program(); }
  // REQUIRES: the variant outlives it.
  BoundStep bind(const PlannedStep& variant) {
    return BoundStep(variant, planned_.full(), planned_.backend(), *arena_);
  }

 private:
  PlannedTraining& planned_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<BoundStep> trained_;
};

}  // namespace thimble
