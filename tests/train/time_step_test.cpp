#include "train/time_step.h"

#include <gtest/gtest.h>

#include "select/choose.h"

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

// Batches by tokens: the variant whose arena it is.
TEST(TimeStep, RunsTheVariantThatTakesMost) {
  Recipe recipe;
  recipe.model = {.name = "dynamicconv:width=16,heads=2,encoder=1,decoder=1"};
  split_name(recipe.model);
  recipe.tokens = 50;
  recipe.lengths = {5, 8, 12};
  recipe.optimizer = parse_optimizer("adam");
  recipe.on.threads = 1;
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  EXPECT_EQ(planned.microbatches.rows, planned.full().shape.rows);
  EXPECT_GT(seconds_of_step(planned), 0);
}

}  // namespace
}  // namespace thimble
