// Optimizer state, Adafactor, and clipping by the norm of all gradients, trained for real: they go
// with everything else.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../file_support.h"
#include "base/error.h"
#include "digits_runs.h"
#include "select/choose.h"

namespace thimble {
namespace {

std::vector<RunSetup> combinations() {
  std::vector<RunSetup> all;
  for (RunSetup run : {wrn_run(), lstm_run(), mlp_run()}) {
    run.optimizer = "adam", run.state_bits = 16;
    all.push_back(run);
    run.state_bits = 8;
    all.push_back(run);
    run.microbatch = 6;
    all.push_back(run);
    run.optimizer = "sgd", run.fold = true;
    all.push_back(run);
    run.microbatch = 0, run.clip_norm = 0.5, run.clip_two_pass = true;
    all.push_back(run);
    run.fold = false, run.clip_two_pass = false, run.microbatch = 6;
    all.push_back(run);
    run.optimizer = "adafactor", run.state_bits = 32;
    all.push_back(run);
  }
  for (const DType storage : {DType::f16, DType::bf16}) {  // in 16 bits, and sparse
    RunSetup run = wrn_run();
    run.model.storage = storage;
    run.sparsity = {.density = 0.3, .method = SparseMethod::fixed};
    run.optimizer = "sgd", run.state_bits = 8, run.fold = true, run.microbatch = 6;
    all.push_back(run);
    run.codec = parse_codec_spec("int4");
    all.push_back(run);
    run.microbatch = 0, run.clip_norm = 0.5, run.clip_two_pass = true;
    all.push_back(run);
    run.optimizer = "adam", run.fold = run.clip_two_pass = false, run.microbatch = 6;
    all.push_back(run);
    run.rounding = Rounding::kahan;
    all.push_back(run);
    run.optimizer = "sgd", run.clip_norm = 0, run.fold = storage == DType::bf16;
    if (run.fold) all.push_back(run);
    run.sparsity = {}, run.fold = false, run.rounding = Rounding::nearest;
    run.optimizer = "adafactor", run.state_bits = 32;
    all.push_back(run);
  }
  return all;
}

TEST(OptimizerState, PlannersKeepTheirBits) {
  for (RunSetup run : combinations()) {
    SCOPED_TRACE(
        fmt::format("{} {} {} {}", run.model.name, run.optimizer, run.fold, run.clip_norm));
    TrainingRun kept(run, {.steps = 2, .evaluate = false});
    kept.run();
    const std::string expected = persistent_bytes(kept.program());
    for (const char* planner : {"drop_cheap", "sqrt_segments", "log_recursive", "mirror"}) {
      run.planner = planner;
      TrainingRun other(run, {.steps = 2, .evaluate = false});
      other.run();
      // Planners place constants alike too, so that all of it is comparable.
      EXPECT_EQ(persistent_bytes(other.program()), expected) << planner;
    }
  }
}

TEST(OptimizerState, ResumesToTheSameBits) {
  for (RunSetup run : combinations()) {
    SCOPED_TRACE(fmt::format("{} {} {}", run.model.name, run.optimizer, run.fold));
    const TemporaryFolder folder;
    RunOptions options = {.steps = 4, .save_every = 2, .evaluate = false};
    const TrainResult expected = TrainingRun(run, options).run();
    options.out = folder / "out";
    RunOptions cut = options;
    cut.on_microbatch = [](MicrobatchId which, TrainingStep::Part&) {
      if (which.step == 3) throw std::runtime_error("killed");
    };
    EXPECT_THROW(TrainingRun(run, cut).run(), std::runtime_error);
    options.resume = true;
    const TrainResult resumed = TrainingRun(run, options).run();
    EXPECT_EQ(resumed.resumed_at, 2);
    EXPECT_EQ(resumed.weights_sha256, expected.weights_sha256);
  }
}

TEST(OptimizerState, ACheckpointOfAnotherWidthIsRefused) {
  RunSetup run = digits_mlp("adam", 8);
  const TemporaryFolder folder;
  RunOptions options = {.steps = 2, .evaluate = false, .out = folder / "out"};
  TrainingRun(run, options).run();
  options.resume = true;
  run.state_bits = 32;
  EXPECT_TRUE(throws_saying<UserError>([&] { TrainingRun(run, options); }, "state_bits"));
}

TEST(Adafactor, LearnsTheDigitsWithNextToNoState) {
  TrainingRun factored(digits_mlp("adafactor"), {.steps = kSteps});
  TrainingRun adam(digits_mlp("adam"), {.steps = 1});
  const TrainResult result = factored.run();
  EXPECT_GT(result.test["accuracy"], 0.95);
  EXPECT_LT(mean_of_last(result, 20), 0.1 * result.losses.front());
  EXPECT_LT(20 * state_bytes(factored.planned()).count, state_bytes(adam.planned()).count);
}

// In f32 and by powers of two nothing is left of a scaled loss; but random numbers are drawn from
// other streams, where updates draw some.
TEST(OptimizerState, AScaledLossChangesNothing) {
  std::vector<RunSetup> runs;
  for (const char* optimizer : {"sgd", "nesterov", "adam", "adamw"}) {
    runs.push_back(digits_mlp(optimizer, 8));
  }
  runs.push_back(digits_mlp("adafactor"));
  const size_t unclipped = runs.size();
  for (size_t i = 0; i < unclipped; ++i) {
    RunSetup run = runs[i];
    run.clip_norm = 0.5;
    runs.push_back(run);
    run.clip_two_pass = true;
    runs.push_back(run);
    run.clip_two_pass = false, run.microbatch = 20;
    runs.push_back(run);
  }
  for (const int64_t microbatch : {0, 20}) {  // and folded
    RunSetup run = digits_mlp("sgd", 8);
    run.fold = true;
    run.microbatch = microbatch;
    runs.push_back(run);
    run.sparsity = {.density = 0.5, .method = SparseMethod::fixed};
    runs.push_back(run);
  }
  for (RunSetup& run : runs) {
    SCOPED_TRACE(fmt::format("{} {} clip {} {} rows {} fold {}", run.optimizer, run.state_bits,
                             run.clip_norm, run.clip_two_pass, run.microbatch, run.fold));
    const auto train = [&] { return TrainingRun(run, {.steps = 12, .evaluate = false}).run(); };
    const TrainResult expected = train();
    const bool random = run.fold || run.optimizer.starts_with("adam");
    for (const auto kind : {LossScaling::Kind::fixed, LossScaling::Kind::dynamic}) {
      if (run.fold && kind == LossScaling::Kind::dynamic) continue;
      run.scaling = {.kind = kind, .start = 0x1p10};
      const TrainResult got = train();
      if (!random) {
        EXPECT_EQ(got.weights_sha256, expected.weights_sha256);
      }
      EXPECT_NEAR(got.losses.back(), expected.losses.back(), 0.01 * expected.losses.back());
    }
  }
}

TEST(OptimizerState, ASkippedStepChangesNothing) {
  for (const char* optimizer : {"sgd", "adam", "adafactor"}) {
    for (const bool two_pass : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", optimizer, two_pass));
      RunSetup run = digits_mlp(optimizer, optimizer == std::string("adafactor") ? 32 : 8);
      run.model.storage = DType::f16;
      run.clip_norm = 1;
      run.clip_two_pass = two_pass;
      run.scaling = {.kind = LossScaling::Kind::dynamic, .start = 0x1p30};
      TrainingRun first(run, {.steps = 1, .evaluate = false});
      const std::string before = persistent_bytes(first.program());
      EXPECT_EQ(first.run().skipped, 1);
      EXPECT_EQ(persistent_bytes(first.program()), before);
      const TrainResult result = TrainingRun(run, {.steps = kSteps}).run();
      EXPECT_GT(result.skipped, 5);
      EXPECT_LT(result.skipped, 30);
      EXPECT_LT(mean_of_last(result, 20), 0.3 * result.losses.front());
    }
  }
}

// bf16 weights of which most steps are lost when rounded to the nearest, and f32 ones beside bf16
// gradients.
TEST(OptimizerState, GoesWithRoundingAndMasterWeights) {
  for (const char* optimizer : {"sgd", "adam", "adafactor"}) {
    SCOPED_TRACE(optimizer);
    RunSetup run = digits_mlp(optimizer, optimizer == std::string("adafactor") ? 32 : 8);
    run.rate /= 4;
    const double expected = mean_of_last(TrainingRun(run, {.steps = kSteps}).run(), kSteps);
    run.model.storage = DType::bf16;
    run.rounding = Rounding::stochastic;
    const double rounded = mean_of_last(TrainingRun(run, {.steps = kSteps}).run(), kSteps);
    EXPECT_NEAR(rounded, expected, 0.05 * expected);
    run.rounding = Rounding::nearest;
    run.model.master = true;
    const double mastered = mean_of_last(TrainingRun(run, {.steps = kSteps}).run(), kSteps);
    EXPECT_NEAR(mastered, expected, 0.05 * expected);
  }
}

// Compensated, bf16 weights learn beside state in 8 bits as f32 ones do, however small the steps.
TEST(OptimizerState, GoesWithKahanRounding) {
  for (const auto& [optimizer, fold] :
       {std::pair("sgd", false), std::pair("sgd", true), std::pair("adam", false)}) {
    SCOPED_TRACE(fmt::format("{} {}", optimizer, fold));
    RunSetup run = digits_mlp(optimizer, 8);
    run.fold = fold;
    run.rate /= 4;
    const double expected = mean_of_last(TrainingRun(run, {.steps = kSteps}).run(), kSteps);
    run.model.storage = DType::bf16;
    run.rounding = Rounding::kahan;
    const double compensated = mean_of_last(TrainingRun(run, {.steps = kSteps}).run(), kSteps);
    EXPECT_NEAR(compensated, expected, 0.05 * expected);
  }
}

std::vector<float> all_weights(TrainingRun& run) {
  std::vector<float> weights;
  const Graph& graph = run.program().graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].producer.valid() || graph.values[v].role != Role::weight) continue;
    const auto view = run.program().view<float>(make_id<ValueId>(v));
    weights.insert(weights.end(), view.begin(), view.end());
  }
  return weights;
}

// With momentum zero at the start, the first step of SGD is the gradient: its norm tells the rest.
std::vector<double> first_step(RunSetup run) {
  run.rate = 0;
  TrainingRun still(run, {.steps = 1, .evaluate = false});
  run.rate = 1;
  TrainingRun moving(run, {.steps = 1, .evaluate = false});
  still.run(), moving.run();
  const std::vector<float> before = all_weights(still), after = all_weights(moving);
  std::vector<double> moved;
  for (size_t i = 0; i < before.size(); ++i) {
    moved.push_back(static_cast<double>(before[i]) - static_cast<double>(after[i]));
  }
  return moved;
}

double norm_of(const std::vector<double>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

TEST(Clipping, ScalesEveryGradientByTheNormOfAll) {
  const RunSetup plain = digits_mlp("sgd");
  const std::vector<double> gradient = first_step(plain);
  const double norm = norm_of(gradient);
  for (const double share : {0.3, 2.0}) {
    for (const auto& [microbatch, two_pass, fold] :
         {std::tuple(0, false, false), std::tuple(7, false, false), std::tuple(0, true, false),
          std::tuple(0, true, true)}) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", share, microbatch, two_pass, fold));
      RunSetup run = plain;
      run.clip_norm = share * norm;
      run.microbatch = microbatch;
      run.clip_two_pass = two_pass;
      run.fold = fold;
      const std::vector<double> clipped = first_step(run);
      EXPECT_NEAR(norm_of(clipped), std::min(1.0, share) * norm, 1e-5 * norm);
      for (size_t i = 0; i < clipped.size(); ++i) {
        // Weights of order 1 are read back in f32.
        ASSERT_NEAR(clipped[i], std::min(1.0, share) * gradient[i], 1e-6) << i;
      }
    }
  }
}

TEST(Clipping, InTwoPassesKeepsNoGradients) {
  RunSetup run = digits_mlp("sgd");
  run.model.batch = 4;  // weights are what takes memory here
  run.model.name += ",layers=6";
  run.clip_norm = 1;
  const Bytes once = TrainingRun(run, {.steps = 1}).planned().plan().arena;
  run.clip_two_pass = true;
  const Bytes twice = TrainingRun(run, {.steps = 1}).planned().plan().arena;
  // Six layers of 64 x 64 and their neighbours, of which one is alive at a time.
  EXPECT_LT(twice, once - Bytes(4 * 64 * 64 * 4));
}

TEST(Optimizer, RefusesWhatDoesNotGoTogether) {
  const auto refuses = [](auto change, const char* name, auto... says) {
    OptimizerSpec spec = parse_optimizer(name);
    change(spec);
    EXPECT_TRUE(throws_saying<UserError>([&] { check_optimizer(spec, false); }, says...));
  };
  refuses([](OptimizerSpec& s) { s.fold = true, s.clip_norm = 1; }, "sgd", "without --fold");
  refuses([](OptimizerSpec& s) { s.state_bits = 4; }, "adam", "--state-bits 8, 16 or 32");
  refuses([](OptimizerSpec& s) { s.state_bits = 8; }, "adafactor", "--optimizer adam");
  refuses([](OptimizerSpec& s) { s.state_bits = 16; }, "adafactor", "--optimizer adam");
  refuses([](OptimizerSpec& s) { s.state_bits = 16, s.fold = true; }, "sgd",
          "--state-bits 8 or 32");
  refuses([](OptimizerSpec& s) { s.state_bits = 8, s.momentum = 0; }, "sgd", "--momentum");
  refuses([](OptimizerSpec& s) { s.clip_two_pass = true; }, "sgd", "--clip-norm");
  refuses([](OptimizerSpec& s) { s.fold = true; }, "adafactor", "--optimizer sgd");
  const auto dynamic = [&](OptimizerSpec& s) { s.scaling.kind = LossScaling::Kind::dynamic; };
  refuses([&](OptimizerSpec& s) { dynamic(s), s.state_bits = 8, s.fold = true; }, "sgd",
          "--loss-scale that is a number");
  const auto compensated = [&](OptimizerSpec& s) { s.rounding = Rounding::kahan; };
  refuses(compensated, "adafactor", "--rounding stochastic");
  // Hyper-parameters out of range, and those that the rule does not read.
  refuses([](OptimizerSpec& s) { s.momentum = 1; }, "sgd", "--momentum", "[0, 1)");
  refuses([](OptimizerSpec& s) { s.beta2 = 1.5; }, "adam", "--beta2", "[0, 1)");
  refuses([](OptimizerSpec& s) { s.epsilon = 0; }, "adam", "--epsilon", "above 0");
  refuses([](OptimizerSpec& s) { s.weight_decay = -1; }, "adamw", "--weight-decay");
  refuses([](OptimizerSpec& s) { s.momentum = 0.5; }, "adam", "--momentum says nothing to adam",
          "nesterov or sgd");
  refuses([](OptimizerSpec& s) { s.beta1 = 0.5; }, "sgd", "--beta1", "adam or adamw");
  refuses([](OptimizerSpec& s) { s.name = "sgd_plain"; }, "sgd", "'sgd_plain'", "nesterov");
  OptimizerSpec spec = parse_optimizer("sgd");
  spec.clip_norm = 1;
  spec.clip_two_pass = true;
  EXPECT_NO_THROW(check_optimizer(spec, false));
  EXPECT_TRUE(throws_saying<UserError>([&] { check_optimizer(spec, true); }, "--clip-two-pass"));

  Recipe recipe;
  recipe.model = digits_mlp("adam").model;
  recipe.device = "null";
  recipe.optimizer = parse_optimizer("adam");
  recipe.optimizer.state_bits = 8;
  recipe.allow = NumericsTier::equivalent;
  EXPECT_TRUE(throws_saying<UserError>([&] { plan_training(recipe); }, "8 bits", "--state-bits"));
}

}  // namespace
}  // namespace thimble
