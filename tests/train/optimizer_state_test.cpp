// Optimizer state in 8 bits, Adafactor, and clipping by the norm of all gradients, trained for
// real.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../file_support.h"
#include "base/error.h"
#include "support/runs.h"

namespace thimble {
namespace {

RunSetup digits_mlp(const std::string& optimizer, int state_bits = 32) {
  return {.model = {.name = "mlp", .batch = 48, .hidden = 64},
          .optimizer = optimizer,
          .rate = optimizer[0] == 'a' ? 2e-3 : 0.05,
          .state_bits = state_bits};
}

double mean_of_last(const TrainResult& result, size_t count) {
  return std::accumulate(result.losses.end() - static_cast<ptrdiff_t>(count), result.losses.end(),
                         0.0) /
         static_cast<double>(count);
}

Bytes state_bytes(const PlannedStepProgram& planned) {
  Bytes sum;
  for (const Value& value : planned.training->model.graph.values) {
    const bool state = value.role == Role::optimizer_state && !value.producer.valid();
    if (state) sum += value.type.bytes();
  }
  return sum;
}

constexpr int64_t kSteps = 300;  // ten epochs of the digits

TEST(EightBits, LearnAsFullStateDoes) {
  for (const char* optimizer : {"adam", "adamw", "sgd", "nesterov"}) {
    SCOPED_TRACE(optimizer);
    TrainingRun full(digits_mlp(optimizer), {.steps = kSteps});
    TrainingRun coded(digits_mlp(optimizer, 8), {.steps = kSteps});
    const TrainResult expected = full.run(), got = coded.run();
    const double loss = mean_of_last(expected, kSteps);
    EXPECT_NEAR(mean_of_last(got, kSteps), loss, 0.01 * loss);
    // The digits are all but memorised by then: what is left of the loss, any rounding moves.
    const double slack = optimizer[0] == 'a' ? 0.02 : 0.1;
    EXPECT_NEAR(got.test_loss, expected.test_loss, slack * expected.test_loss);
    EXPECT_NE(got.weights_sha256, expected.weights_sha256);
    EXPECT_LT(3.5 * static_cast<double>(state_bytes(coded.planned()).count),
              static_cast<double>(state_bytes(full.planned()).count));
    EXPECT_EQ(coded.planned().tier, Tier::approximate);
    EXPECT_EQ(full.planned().tier, Tier::exact);
  }
}

TEST(EightBits, FoldGradientsOfManyMicrobatches) {
  RunSetup run = digits_mlp("sgd");
  const TrainResult expected = TrainingRun(run, {.steps = kSteps}).run();
  run.fold = true;
  run.state_bits = 8;
  for (const int64_t rows : {48, 5, 4}) {  // one microbatch; ten, the last smaller; twelve
    SCOPED_TRACE(rows);
    run.microbatch = rows;
    TrainingRun folded(run, {.steps = kSteps});
    const TrainResult got = folded.run();
    const double loss = mean_of_last(expected, kSteps);
    EXPECT_NEAR(mean_of_last(got, kSteps), loss,
                0.02 * loss);  // rounded anew with every microbatch
    EXPECT_NEAR(got.test_loss, expected.test_loss, 0.1 * expected.test_loss);
    // A gradient lives until it is added: never two at a time.
    const Bytes at_peak = folded.planned().plan.peak_by_role[static_cast<size_t>(Role::gradient)];
    EXPECT_LE(at_peak, Bytes(64 * 64 * 4));
  }
}

TEST(EightBits, LearnFromSixteenBits) {
  for (const DType storage : {DType::f16, DType::bf16}) {
    SCOPED_TRACE(name_of(storage));
    RunSetup run = digits_mlp("sgd", 8);
    run.model.storage = storage;
    run.fold = true;
    run.microbatch = 16;
    const TrainResult result = TrainingRun(run, {.steps = kSteps}).run();
    EXPECT_GT(result.test_accuracy, 0.9);
    EXPECT_LT(mean_of_last(result, 20), 0.2 * result.losses.front());
  }
}

TEST(EightBits, OfSparseWeightsStayWhereTheyAre) {
  RunSetup run = digits_mlp("sgd", 8);
  run.sparsity = {.density = 0.3};
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { TrainingRun(run, {.steps = 4, .reallocate_every = 2}).run(); }, "--sparsity static"));
  run.sparsity.method = SparseMethod::fixed;
  const TrainResult result = TrainingRun(run, {.steps = kSteps}).run();
  EXPECT_LT(mean_of_last(result, 20), 0.2 * result.losses.front());
}

TEST(EightBits, SmallWeightsKeepTheirState) {
  const TrainingRun run(digits_mlp("adam", 8), {.steps = 1});
  const Graph& graph = run.planned().training->model.graph;
  EXPECT_EQ(graph[graph.find("update.hidden1.weight.first_moment")].type.dtype, DType::u8);
  EXPECT_TRUE(graph.find("update.hidden1.weight.first_moment.scales").valid());
  EXPECT_EQ(graph[graph.find("update.hidden1.bias.first_moment")].type.dtype, DType::f32);
}

std::vector<RunSetup> combinations() {
  std::vector<RunSetup> all;
  for (RunSetup run : {wrn_run(), lstm_run(), mlp_run()}) {
    run.optimizer = "adam", run.state_bits = 8;
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
    run.codec.codec = Codec::int4;
    all.push_back(run);
    run.microbatch = 0, run.clip_norm = 0.5, run.clip_two_pass = true;
    all.push_back(run);
    run.optimizer = "adam", run.fold = run.clip_two_pass = false, run.microbatch = 6;
    all.push_back(run);
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
    TrainOptions options = {.steps = 4, .save_every = 2, .evaluate = false};
    const TrainResult expected = TrainingRun(run, options).run();
    options.out = folder / "out";
    TrainOptions cut = options;
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
  TrainOptions options = {.steps = 2, .evaluate = false, .out = folder / "out"};
  TrainingRun(run, options).run();
  options.resume = true;
  run.state_bits = 32;
  EXPECT_TRUE(throws_saying<UserError>([&] { TrainingRun(run, options); }, "state_bits"));
}

TEST(Adafactor, LearnsTheDigitsWithNextToNoState) {
  TrainingRun factored(digits_mlp("adafactor"), {.steps = kSteps});
  TrainingRun adam(digits_mlp("adam"), {.steps = 1});
  const TrainResult result = factored.run();
  EXPECT_GT(result.test_accuracy, 0.95);
  EXPECT_LT(mean_of_last(result, 20), 0.1 * result.losses.front());
  EXPECT_LT(20 * state_bytes(factored.planned()).count, state_bytes(adam.planned()).count);
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
  run.model.layers = 6;
  run.clip_norm = 1;
  const Bytes once = TrainingRun(run, {.steps = 1}).planned().plan.arena;
  run.clip_two_pass = true;
  const Bytes twice = TrainingRun(run, {.steps = 1}).planned().plan.arena;
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
  refuses([](OptimizerSpec& s) { s.state_bits = 4; }, "adam", "--state-bits 8 or 32");
  refuses([](OptimizerSpec& s) { s.state_bits = 8; }, "adafactor", "--optimizer adam");
  refuses([](OptimizerSpec& s) { s.state_bits = 8, s.momentum = 0; }, "sgd", "--momentum");
  refuses([](OptimizerSpec& s) { s.clip_two_pass = true; }, "sgd", "--clip-norm");
  refuses([](OptimizerSpec& s) { s.fold = true; }, "adafactor", "--optimizer sgd");
  for (const auto kind : {LossScaling::Kind::fixed, LossScaling::Kind::dynamic}) {
    const auto scaled = [&](OptimizerSpec& s) { s.scaling.kind = kind; };
    refuses([&](OptimizerSpec& s) { scaled(s), s.state_bits = 8; }, "sgd", "8 bits",
            "--precision bf16", "--loss-scale none");
    refuses([&](OptimizerSpec& s) { scaled(s), s.clip_norm = 1; }, "adam", "--loss-scale none");
    refuses([&](OptimizerSpec& s) { scaled(s), s.state_bits = 8, s.fold = true; }, "sgd", "8 bits",
            "--loss-scale none");
    refuses(scaled, "adafactor", "adafactor", "--loss-scale none");
  }
  for (const Rounding rounding : {Rounding::stochastic, Rounding::kahan}) {
    const auto rounded = [&](OptimizerSpec& s) { s.rounding = rounding; };
    refuses([&](OptimizerSpec& s) { rounded(s), s.state_bits = 8; }, "adam",
            "leave --rounding out");
    refuses([&](OptimizerSpec& s) { rounded(s), s.clip_norm = 1; }, "sgd", "leave --rounding out");
    refuses(rounded, "adafactor", "leave --rounding out");
  }
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
  recipe.allow = Tier::equivalent;
  EXPECT_TRUE(throws_saying<UserError>([&] { plan_training(recipe); }, "8 bits", "--state-bits"));
  recipe.allow = Tier::approximate;
  recipe.model.storage = DType::bf16;
  recipe.model.master = true;
  EXPECT_TRUE(throws_saying<UserError>([&] { plan_training(recipe); }, "leave --master out"));
  recipe.optimizer = parse_optimizer("sgd");
  recipe.optimizer.state_bits = 8;
  recipe.optimizer.fold = true;
  EXPECT_NO_THROW(plan_training(recipe));
}

}  // namespace
}  // namespace thimble
