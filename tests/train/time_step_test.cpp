#include "train/time_step.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

double seconds_of(const ModelOptions& model, int64_t microbatch = 0) {
  Recipe recipe;
  recipe.model = model;
  recipe.microbatch = microbatch;
  recipe.on.threads = 1;
  const auto planned = plan_training(recipe);
  return seconds_of_step(std::get<PlannedTraining>(planned));
}

// Images, sequences, microbatches of two sizes: they run, and take some time.
TEST(TimeStep, RunsEveryKindOfStep) {
  EXPECT_GT(seconds_of({.name = "mlp:layers=2,hidden=32", .batch = 8}), 0);
  EXPECT_GT(seconds_of({.name = "mlp:layers=2,hidden=32", .batch = 32}, 10), 0);
  EXPECT_GT(seconds_of({.name = "wrn-10-1", .batch = 4}), 0);
  EXPECT_GT(seconds_of({.name = "lstm:layers=1,hidden=16,length=4", .batch = 4}), 0);
}

}  // namespace
}  // namespace thimble
