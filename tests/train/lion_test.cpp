// Lion on every storage, trained for real. Every other combination: tests/matrix.
#include <gtest/gtest.h>

#include "digits_runs.h"

namespace thimble {
namespace {

RunSetup lion(int state_bits = 32) {
  RunSetup run = digits_mlp("lion", state_bits);
  run.rate = 1e-3;
  return run;
}

double mean_loss(const RunSetup& run) {
  return mean_of_last(TrainingRun(run, {.steps = kSteps, .evaluate = false}).run(), kSteps);
}

TEST(Lion, LearnsTheDigitsOnEveryStorage) {
  const TrainResult wide = TrainingRun(lion(), {.steps = kSteps}).run();
  EXPECT_GT(wide.test_accuracy, 0.95);
  const double expected = mean_of_last(wide, kSteps);
  std::vector<RunSetup> runs = {lion(8)};
  for (const Rounding rounding : {Rounding::stochastic, Rounding::kahan}) {
    for (const int bits : {32, 8}) {
      runs.push_back(lion(bits));
      runs.back().model.storage = DType::bf16;
      runs.back().rounding = rounding;
    }
  }
  runs.push_back(lion());
  runs.back().model.storage = DType::bf16;
  runs.back().model.master = true;
  runs.push_back(lion());
  runs.back().microbatch = 20;
  for (const RunSetup& run : runs) {
    SCOPED_TRACE(
        fmt::format("{} {} {}", name_of(run.model.storage), name_of(run.rounding), run.state_bits));
    EXPECT_NEAR(mean_loss(run), expected, 0.1 * expected);
  }
}

TEST(Lion, AtDensityOneHasTheBitsOfTheDenseNet) {
  const auto trained = [](const RunSetup& run) {
    return TrainingRun(run, {.steps = 6, .evaluate = false}).run().weights_sha256;
  };
  RunSetup run = lion();
  const std::string dense = trained(run);
  run.sparsity.density = 1;
  EXPECT_EQ(trained(run), dense);
}

// One number of state a weight, where Adam has two.
TEST(Lion, KeepsOneNumberAWeight) {
  const TrainingRun adam(digits_mlp("adam"), {.steps = 1});
  const TrainingRun run(lion(), {.steps = 1});
  EXPECT_EQ(2 * state_bytes(run.planned()).count, state_bytes(adam.planned()).count);
}

}  // namespace
}  // namespace thimble
