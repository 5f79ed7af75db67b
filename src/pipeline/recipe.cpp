#include "pipeline/recipe.h"

namespace thimble {
namespace {

// On a GPU, one time step is too little work for the launches that it takes.
constexpr int64_t kGpuStepsAtOnce = 16;

}  // namespace

ModelOptions complete_options(const Recipe& recipe) {
  ModelOptions options = recipe.model;
  if (options.steps_at_once == 0 && recipe.device == "cuda") {
    options.steps_at_once = kGpuStepsAtOnce;
  }
  if (options.build == nullptr) find_model_family(options.name).complete(options);
  return options;
}

Microbatches microbatches_of(const Recipe& recipe) {
  return split_batch(complete_options(recipe).batch, recipe.microbatch);
}

}  // namespace thimble
