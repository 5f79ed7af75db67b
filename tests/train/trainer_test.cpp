#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "../file_support.h"
#include "base/error.h"
#include "support/runs.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

double mean(const std::vector<double>& values, size_t first, size_t count) {
  double sum = 0;
  for (size_t i = first; i < first + count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

TEST(Trainer, EveryOptimizerLearns) {
  struct Setting {
    const char* optimizer;
    double rate;
  };
  for (const auto& [optimizer, rate] : {Setting{"sgd", 0.05}, Setting{"nesterov", 0.05},
                                        Setting{"adam", 3e-3}, Setting{"adamw", 3e-3}}) {
    RunSetup run = mlp_run();
    run.optimizer = optimizer;
    run.rate = rate;
    const TrainResult result = TrainingRun(run, {.steps = 100}).run();
    ASSERT_EQ(result.losses.size(), 100u);
    EXPECT_NEAR(result.losses[0], std::log(10.0), 0.4) << optimizer;
    EXPECT_LT(mean(result.losses, 90, 10), 0.4 * mean(result.losses, 0, 5)) << optimizer;
    EXPECT_GT(result.test["accuracy"], 0.85) << optimizer;
  }
}

TEST(Trainer, TheOtherModelsLearnToo) {
  for (RunSetup run : {wrn_run(), lstm_run()}) {
    run.optimizer = "adam";
    run.rate = 5e-3;
    const TrainResult result = TrainingRun(run, {.steps = 80, .evaluate = false}).run();
    EXPECT_LT(mean(result.losses, 70, 10), 0.6 * mean(result.losses, 0, 5)) << run.model.name;
  }
}

TEST(Trainer, SameSeedSameBitsOtherSeedOther) {
  for (const RunSetup& run : {mlp_run(), wrn_run(), lstm_run()}) {
    const TrainResult a = TrainingRun(run, {.steps = 4}).run();
    const TrainResult b = TrainingRun(run, {.steps = 4}).run();
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.weights_sha256, b.weights_sha256);
    EXPECT_EQ(a.test.loss, b.test.loss);
    RunSetup other = run;
    other.seed = run.seed + 1;
    EXPECT_NE(TrainingRun(other, {.steps = 4}).run().weights_sha256, a.weights_sha256);
  }
}

TEST(Trainer, WhatIsMeasuredIsWhatWasPlanned) {
  for (const RunSetup& run : {mlp_run(), wrn_run(), lstm_run(), lstm_runs_run()}) {
    TrainingRun training(run, {.steps = 2});
    const TrainResult result = training.run();
    EXPECT_EQ(result.measured_arena, training.planned().plan().arena) << run.model.name;
    EXPECT_LE(result.evaluation_arena, result.measured_arena) << run.model.name;
  }
}

TEST(Trainer, EvaluationDoesNotDisturbTraining) {
  for (const RunSetup& run : {mlp_run(), wrn_run(), lstm_run()}) {
    TrainingRun never(run, {.steps = 8, .evaluate = false});
    TrainingRun often(run, {.steps = 8, .evaluate_every = 1});
    const TrainResult expected = never.run(), result = often.run();
    EXPECT_EQ(result.losses, expected.losses) << run.model.name;
    EXPECT_EQ(persistent_bytes(often.program()), persistent_bytes(never.program()))
        << run.model.name;
    EXPECT_EQ(expected.test_count, 0);
    EXPECT_GT(result.test_count, 0);
  }
}

// The test set is no multiple of the batch: the last batch is partly filled, and counts for what it
// holds. One record at a time must see the same records, each once.
TEST(Trainer, EvaluationCountsEveryTestRecordOnce) {
  for (RunSetup run : {mlp_run(), wrn_run(), lstm_run()}) {
    SCOPED_TRACE(run.model.name);
    const TemporaryFolder folder;
    const std::string weights = folder / "w.safetensors";
    TrainingRun trained(run, {.steps = 20});
    const TrainResult reported = trained.run();
    trained.trainer().export_weights(weights);
    std::vector<TrainResult> results;
    const int64_t batches[] = {1, 7, 16, 64};
    for (const int64_t batch : batches) {
      // Straight through the evaluator's own parts: no training step in between.
      RunSetup sized = run;
      sized.model.batch = batch;
      TrainingRun evaluated(sized, {.steps = 1, .evaluate = false, .weights = weights});
      const auto evaluations = plan_evaluation(evaluated.planned());
      const PlannedStep* const evaluation = evaluations.front().get();
      const auto arena = evaluated.planned().backend().allocate(evaluated.planned().plan().arena);
      Program program(evaluation->model.graph, evaluation->plan, evaluated.planned().backend(),
                      *arena);
      // Constants and weights from the loaded program, by name.
      for (size_t v = 0; v < evaluation->model.graph.values.size(); ++v) {
        const Value& value = evaluation->model.graph.values[v];
        if (value.producer.valid() || !is_persistent(value.role)) continue;
        const ValueId twin = evaluated.program().graph().find(value.name);
        const auto to = program.bytes_of(make_id<ValueId>(v));
        if (twin.valid()) {
          const auto from = evaluated.program().bytes_of(twin);
          std::copy(from.begin(), from.end(), to.begin());
        } else {
          std::fill(to.begin(), to.end(), std::byte{0});  // an LSTM's first state
        }
      }
      TrainResult result;
      MetricAccumulator accumulated(evaluation->model);
      int64_t rows = 0;
      for (int64_t first = 0; first < evaluated.feeder().test_count();) {
        const auto filled = evaluated.feeder().fill_test(program, evaluation->model, first);
        program.run();
        accumulated.add(program, evaluation->model, filled.counted, filled.counted);
        first += filled.rows;
        rows += filled.rows;
      }
      EXPECT_EQ(rows, evaluated.feeder().test_count());
      result.test_count = rows;
      result.test = accumulated.figures();
      results.push_back(result);
    }
    for (const TrainResult& result : results) {
      // The same rows in another grouping: counts are whole numbers, sums round differently.
      EXPECT_EQ(result.test["accuracy"], results[0].test["accuracy"]);
      EXPECT_NEAR(result.test.loss, results[0].test.loss, 1e-5 * results[0].test.loss);
    }
    // And that is what the trainer itself reports for these weights.
    EXPECT_EQ(reported.test["accuracy"], results[0].test["accuracy"]);
    EXPECT_EQ(reported.test_count, results[0].test_count);
  }
}

class NonFinite : public testing::Test {
 protected:
  // Trains until it explodes; returns the message.
  std::string explode(RunOptions options, const RunSetup& run) {
    training_ = std::make_unique<TrainingRun>(run, std::move(options));
    return message_of<UserError>([&] { training_->run(); });
  }

  static RunSetup wild() {
    RunSetup run = mlp_run();
    run.model.dropout = 0;
    run.rate = 1e30;
    return run;
  }

  TemporaryFolder folder_;
  std::unique_ptr<TrainingRun> training_;
};

TEST_F(NonFinite, SaysWhereAndAtWhichStep) {
  const std::string message = explode({.steps = 20}, wild());
  EXPECT_NE(message.find("not finite at step 2"), std::string::npos) << message;
  EXPECT_NE(message.find("is the first value that is not"), std::string::npos) << message;
  EXPECT_NE(message.find("'"), std::string::npos) << message;
  EXPECT_NE(message.find("no checkpoint had been saved"), std::string::npos) << message;
  EXPECT_NE(message.find("--lr"), std::string::npos) << message;
}

TEST_F(NonFinite, KeepsTheLastGoodCheckpoint) {
  // Fine for 5 steps, then the rate explodes.
  RunSetup run = wild();
  run.rate = 1e-30;
  RunOptions options = {.steps = 20, .save_every = 1, .evaluate = false, .out = folder_ / "out"};
  options.rate.kind = RateSchedule::Kind::step;
  options.rate.milestones = {5};
  options.rate.factor = 1e60;
  const std::string message = explode(options, run);
  // Step 6 takes the giant step, step 7 sees it.
  EXPECT_NE(message.find("not finite at step 7"), std::string::npos) << message;
  const auto latest = latest_checkpoint(folder_ / "out");
  ASSERT_TRUE(latest.has_value());
  EXPECT_NE(message.find(*latest), std::string::npos) << message;
  // It loads, and everything in it is finite.
  RunOptions resume = options;
  resume.resume = true;
  TrainingRun resumed(run, resume);
  const Graph& graph = resumed.program().graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    for (const float x : resumed.program().view<float>(make_id<ValueId>(v))) {
      ASSERT_TRUE(std::isfinite(x)) << value.name;
    }
  }
}

TEST_F(NonFinite, WeightsThatAreNotFiniteAreNeverSaved) {
  RunSetup run = wild();
  run.rate = 0.01;
  run.model.storage = DType::f16;  // whose gradients overflow under this scale, the loss does not
  run.scaling = {.kind = LossScaling::Kind::fixed, .start = 1e7};
  RunOptions options = {.steps = 1, .evaluate = false, .out = folder_ / "out"};
  const std::string message = explode(options, run);
  EXPECT_NE(message.find("not finite"), std::string::npos) << message;
  EXPECT_NE(message.find("step 1"), std::string::npos) << message;
  EXPECT_EQ(latest_checkpoint(folder_ / "out"), std::nullopt);
}

TEST_F(NonFinite, ABadInputIsNamedAsWell) {
  // A weight that is not a number from the start.
  TrainingRun training(mlp_run(), {.steps = 3, .evaluate = false});
  const ValueId weight = training.program().graph().find("hidden1.weight");
  ASSERT_TRUE(weight.valid());
  training.program().view<float>(weight)[7] = std::nanf("");
  EXPECT_TRUE(
      throws_saying<UserError>([&] { training.run(); }, "step 1", "weight 'hidden1.weight'"));
}

TEST_F(NonFinite, TheSecondLookSeesTheSameStep) {
  // Dropout draws from the step's own random bits; the pass that looks for the fault must meet it.
  RunSetup run = wild();
  run.model.dropout = 0.5;
  const std::string message = explode({.steps = 20}, run);
  EXPECT_NE(message.find("the output of '"), std::string::npos) << message;
  EXPECT_EQ(message.find("the loss is the first"), std::string::npos) << message;
}

TEST(Trainer, ALostDeviceSaysWhereToGoOn) {
  const TemporaryFolder folder;
  RunOptions options = {.steps = 6, .save_every = 2, .evaluate = false};
  const std::string whole = TrainingRun(mlp_run(), options).run().weights_sha256;
  options.out = folder / "out";
  int64_t lost_at = 1;
  options.on_microbatch = [&](MicrobatchId which, TrainingStep::Part&) {
    if (which.step == lost_at) throw DeviceError("the card is lost");
  };
  EXPECT_TRUE(throws_saying<DeviceError>([&] { TrainingRun(mlp_run(), options).run(); },
                                         "the card is lost; no checkpoint had been saved yet"));
  lost_at = 5;
  EXPECT_TRUE(throws_saying<DeviceError>([&] { TrainingRun(mlp_run(), options).run(); },
                                         "step-00000004: go on with --resume"));
  options.on_microbatch = {};
  options.resume = true;
  EXPECT_EQ(TrainingRun(mlp_run(), options).run().weights_sha256, whole);
}

TEST(TrainerErrors, ComeBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  RunSetup run = mlp_run();
  run.model.batch = 100000;
  EXPECT_TRUE(
      throws_saying<UserError>([&] { TrainingRun(run, {.steps = 1, .out = folder / "out"}); },
                               "100000", "training records"));
  EXPECT_EQ(folder.entries(), 0);
  spill(folder / "file", "x");
  EXPECT_THROW(TrainingRun(mlp_run(), {.steps = 1, .out = folder / "file"}), UserError);
  EXPECT_EQ(slurp(folder / "file"), "x");
}

TEST(Trainer, ProgressIsReportedEveryStep) {
  TrainingRun training(mlp_run(), {.steps = 6, .evaluate_every = 4});
  std::vector<Progress> seen;
  const TrainResult result = training.trainer().run([&](const Progress& p) { seen.push_back(p); });
  ASSERT_EQ(seen.size(), 6u);
  double sum = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    sum += result.losses[i];
    EXPECT_EQ(seen[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(seen[i].steps, 6);
    EXPECT_DOUBLE_EQ(seen[i].train.loss, sum / static_cast<double>(i + 1));
    EXPECT_EQ(seen[i].evaluated, i == 3 || i == 5);
    EXPECT_EQ(seen[i].arena, training.planned().plan().arena);
    EXPECT_EQ(seen[i].rate, 0.02);
  }
}

}  // namespace
}  // namespace thimble
