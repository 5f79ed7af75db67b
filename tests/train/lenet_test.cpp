#include "support/runs.h"

namespace thimble {
namespace {

RunSetup lenet() { return {.model = {.name = "lenet", .batch = 32}, .rate = 0.05}; }

TEST(LeNet, LearnsTheDigitsInTheArenaThatWasPlanned) {
  TrainingRun run(lenet(), {.steps = 150});
  const TrainResult result = run.run();
  EXPECT_GT(result.test["accuracy"], 0.9);
  EXPECT_EQ(result.measured_arena, run.planned().plan().arena);
}

TEST(LeNet, HasTheSameWeightsWhateverIsComputedAgain) {
  const auto trained = [](const std::string& planner) {
    RunSetup run = lenet();
    run.planner = planner;
    return TrainingRun(run, {.steps = 4, .evaluate = false}).run().weights_sha256;
  };
  const std::string kept = trained("keep_all");
  for (const char* planner : {"sqrt_segments", "drop_cheap", "log_recursive", "optimal"}) {
    EXPECT_EQ(trained(planner), kept) << planner;
  }
}

}  // namespace
}  // namespace thimble
