// Training in 16 bits: loss scaling, rounding, and how all that goes with the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "../file_support.h"
#include "base/error.h"
#include "support/runs.h"

namespace thimble {
namespace {

constexpr LossScaling kDynamic = {.kind = LossScaling::Kind::dynamic};
constexpr LossScaling kFixed = {.kind = LossScaling::Kind::fixed};

RunSetup small_wrn(DType storage) {
  RunSetup run = wrn_run();
  run.model.batch = 32;
  run.augment = false;
  run.model.storage = storage;
  run.rate = 0.05;
  if (storage == DType::f16) run.scaling = kDynamic;
  return run;
}

std::vector<double> numbers(Program& program, ValueId value) {
  std::vector<double> result;
  with_float_type(program.graph()[value].type.dtype, [&]<class T>(TypeTag<T>) {
    for (const T x : program.view<T>(value)) result.push_back(static_cast<double>(x));
  });
  return result;
}

TEST(LossScaler, GrowsAfterCleanStepsAndBacksOff) {
  LossScaling scaling = kDynamic;
  scaling.growth_interval = 3;
  LossScaler scaler(scaling);
  EXPECT_EQ(scaler.scale(), 128);
  for (int i = 0; i < 2; ++i) scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 128);
  scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 256);
  scaler.step_done(false);
  scaler.step_done(true);
  EXPECT_EQ(scaler.scale(), 128);
  EXPECT_EQ(scaler.skipped(), 1);
  for (int i = 0; i < 2; ++i) scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 128) << "the overflow must start the count again";
  scaler.step_done(false);
  EXPECT_EQ(scaler.scale(), 256);
}

// A checkpoint has the scale, the clean steps since it changed, and those that were skipped.
TEST(LossScaler, GoesOnWhereItWas) {
  LossScaling scaling = kDynamic;
  scaling.growth_interval = 3;
  LossScaler before(scaling);
  for (const bool overflow : {true, false, false}) before.step_done(overflow);
  LossScaler after(scaling);
  const nlohmann::json saved = nlohmann::json::parse(before.to_json().dump());
  ASSERT_TRUE(after.from_json(saved));
  EXPECT_EQ(after.scale(), 64);
  EXPECT_EQ(after.skipped(), 1);
  EXPECT_EQ(after.to_json(), before.to_json());
  after.step_done(false);
  EXPECT_EQ(after.scale(), 128) << "the third clean step";
  for (const char* name : {"scale", "clean", "skipped"}) {
    for (const nlohmann::json& wrong :
         {nlohmann::json(-1), nlohmann::json("1"), nlohmann::json()}) {
      nlohmann::json damaged = saved;
      damaged[name] = wrong;
      EXPECT_FALSE(after.from_json(damaged)) << damaged;
    }
  }
  nlohmann::json nothing = saved;
  nothing["scale"] = 0;
  EXPECT_FALSE(after.from_json(nothing)) << "a scale of nothing";
}

// The number of a step corrects Adam's means, which a skipped step has left alone. Of a scale that has only
// been halved, every halving was one.
TEST(LossScaling, SkippedStepsDoNotCountForAdam) {
  RunSetup run = small_wrn(DType::f16);
  run.optimizer = "adam";
  run.rate = 0.002;
  run.scaling.start = 0x1p30;
  for (const int64_t microbatch : {0, 12}) {
    run.microbatch = microbatch;
    RunOptions options = {.steps = 30, .evaluate = false};
    double last = 0;
    options.on_microbatch = [&](MicrobatchId which, TrainingStep::Part& part) {
      if (which.number > 0) return;
      const OptimizerInputs& scalars = part.variant().scalars;
      const auto skipped =
          std::log2(run.scaling.start / part.program().view<float>(scalars.loss_scale)[0]);
      last = part.program().view<float>(scalars.step)[0];
      EXPECT_EQ(last, static_cast<double>(which.step + 1) - skipped) << "step " << which.step;
    };
    const TrainResult result = TrainingRun(run, options).run();
    EXPECT_GT(result.skipped, 5);
    EXPECT_LT(last, 25);
    EXPECT_GT(last, 1);
  }
}

TEST(LossScaler, BelowItsFloorIsAnError) {
  LossScaler scaler(kDynamic);
  for (int i = 0; i < 20; ++i) scaler.step_done(true);  // 128 / 2^20 = 1.2e-4
  EXPECT_THROW(scaler.step_done(true), UserError);
}

TEST(LossScaling, RecoversFromAPlantedOverflow) {
  for (const int64_t microbatch : {0, 12}) {  // 12, 12 and 8 rows
    RunSetup run = small_wrn(DType::f16);
    run.scaling.start = 0x1p30;
    run.microbatch = microbatch;
    TrainingRun first(run, {.steps = 1});
    const Graph& graph = first.program().graph();
    const ValueId weight = graph.find("group1.block1.conv1.weight");
    const ValueId momentum = graph.find("update.group1.block1.conv1.weight.momentum");
    const std::vector<double> before = numbers(first.program(), weight);
    EXPECT_EQ(first.run().skipped, 1);
    EXPECT_EQ(numbers(first.program(), weight), before) << "a skipped step moved a weight";
    for (const double m : numbers(first.program(), momentum)) ASSERT_EQ(m, 0);

    TrainingRun on(run, {.steps = 40});
    const TrainResult result = on.run();
    EXPECT_GT(result.skipped, 5);
    EXPECT_LT(result.skipped, 30);
    EXPECT_EQ(result.loss_scale, std::ldexp(1, 30 - static_cast<int>(result.skipped)));
    EXPECT_LT(result.losses.back(), 0.8 * result.losses.front());
  }
}

// Distance of all gradients together, relative to their length. The momentum of a first step is the
// gradient itself.
double gradients_apart(TrainingRun& a, TrainingRun& b) {
  double apart = 0, length = 0;
  const Graph& graph = a.program().graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.role != Role::optimizer_state || value.producer.valid()) continue;
    const auto x = numbers(a.program(), make_id<ValueId>(v));
    const auto y = numbers(b.program(), b.program().graph().find(value.name));
    for (size_t i = 0; i < x.size(); ++i) {
      apart += (x[i] - y[i]) * (x[i] - y[i]);
      length += x[i] * x[i];
    }
  }
  return std::sqrt(apart / length);
}

// One rounding of 2^-12 per result gives 0.05 % in an mlp. In a net with normalisations, a number
// of relus near zero flip their masks, each of which counts in full: 7 % in fp16 at the first step,
// as with the plain kernels, and 17 % in bf16.
TEST(LossScaling, GradientsAreThoseOfFp32) {
  RunSetup mlp = mlp_run();
  mlp.model.dropout = 0;
  mlp.model.batch = 32;
  for (const auto& [setup, tolerance] :
       {std::pair(mlp, 0.002), std::pair(small_wrn(DType::f32), 0.1)}) {
    SCOPED_TRACE(setup.model.name);
    RunSetup run = setup;
    run.optimizer = "sgd";
    TrainingRun wide(run, {.steps = 1});
    wide.run();
    run.model.storage = DType::f16;
    for (const LossScaling& scaling : {kDynamic, kFixed}) {
      run.scaling = scaling;
      TrainingRun narrow(run, {.steps = 1});
      EXPECT_EQ(narrow.run().skipped, 0);
      EXPECT_LT(gradients_apart(wide, narrow), tolerance);
    }
  }
}

// Two epochs of the digits: within 3 points of fp32 for every way to store and round (a point is
// 3.6 of the 355 test digits; runs of fp32 from other seeds differ by 2).
TEST(Precision, EveryWayLearnsTheDigits) {
  RunOptions options = {.steps = 90};
  options.rate.kind = RateSchedule::Kind::cosine;
  const double fp32 = TrainingRun(small_wrn(DType::f32), options).run().test["accuracy"];
  EXPECT_GT(fp32, 0.9);
  for (const DType storage : {DType::f16, DType::bf16}) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic, Rounding::kahan}) {
      SCOPED_TRACE(fmt::format("{}, {}", name_of(storage), name_of(rounding)));
      RunSetup run = small_wrn(storage);
      run.rounding = rounding;
      EXPECT_GT(TrainingRun(run, options).run().test["accuracy"], fp32 - 0.03);
    }
    RunSetup run = small_wrn(storage);
    run.model.master = true;
    EXPECT_GT(TrainingRun(run, options).run().test["accuracy"], fp32 - 0.03) << "master weights";
  }
}

TEST(Precision, RecomputationChangesNoBit) {
  const RunOptions steps = {.steps = 2, .evaluate = false};
  for (const DType storage : {DType::f16, DType::bf16}) {
    for (const int64_t microbatch : {0, 12}) {
      RunSetup run = small_wrn(storage);
      run.rounding = Rounding::stochastic;
      run.microbatch = microbatch;
      TrainingRun whole(run, steps);
      const std::string expected = whole.run().weights_sha256;
      for (const char* planner : {"drop_cheap", "log_recursive"}) {
        run.planner = planner;
        TrainingRun again(run, steps);
        EXPECT_EQ(again.run().weights_sha256, expected) << planner;
      }
      if (storage == DType::bf16) continue;
      run.planner = "optimal";
      run.memory = Bytes(whole.planned().plan().arena.count * 9 / 10);
      TrainingRun tight(run, steps);
      const TrainResult result = tight.run();
      EXPECT_EQ(result.weights_sha256, expected);
      EXPECT_LE(result.measured_arena, *run.memory);
    }
  }
}

TEST(Precision, MasterWeightsKeepGradientsSmall) {
  RunSetup run = small_wrn(DType::bf16);
  run.model.master = true;
  TrainingRun trained(run, {.steps = 1});
  const Graph& graph = trained.program().graph();
  EXPECT_EQ(graph[graph.find("stem.weight")].type.dtype, DType::f32);
  EXPECT_EQ(graph[graph.find("update.stem.weight.momentum")].type.dtype, DType::bf16);
  int gradients = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "conv2d_backward_weights") continue;
    ++gradients;
    EXPECT_EQ(graph[node.outputs[0]].type.dtype, DType::bf16);
    EXPECT_EQ(graph[node.outputs[0]].role, Role::gradient);
  }
  EXPECT_EQ(gradients, 9);
}

TEST(Precision, FoldsWhereNoStepIsSkipped) {
  RunSetup run = small_wrn(DType::f16);
  run.optimizer = "sgd";
  run.fold = true;
  EXPECT_THROW(TrainingRun(run, {.steps = 1}), UserError);
  run.scaling = kFixed;
  EXPECT_LT(TrainingRun(run, {.steps = 40}).run().train.loss, 2.0);
  run.model.storage = DType::bf16;
  run.scaling = {};
  EXPECT_LT(TrainingRun(run, {.steps = 40}).run().train.loss, 2.0);
}

TEST(Precision, AResumedRunGoesOnToTheBit) {
  RunSetup run = small_wrn(DType::f16);
  run.rounding = Rounding::stochastic;
  run.scaling.start = 0x1p26;  // skips some
  run.scaling.growth_interval = 3;
  const TemporaryFolder folder;
  const TrainResult whole = TrainingRun(run, {.steps = 24}).run();
  EXPECT_GT(whole.skipped, 0);
  TrainingRun(run, {.steps = 12, .out = folder.path()}).run();
  // The schedule is constant in these runs, so that the shorter one is the longer's beginning.
  const TrainResult rest =
      TrainingRun(run, {.steps = 24, .out = folder.path(), .resume = true}).run();
  EXPECT_EQ(rest.resumed_at, 12);
  EXPECT_EQ(rest.weights_sha256, whole.weights_sha256);
  EXPECT_EQ(rest.loss_scale, whole.loss_scale);
  EXPECT_EQ(rest.skipped, whole.skipped);
}

}  // namespace
}  // namespace thimble
