// Microbatches, folded gradients and the normalisations that go with them, trained for real.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../file_support.h"
#include "base/error.h"
#include "support/runs.h"

namespace thimble {
namespace {

// Nets that compute every row by itself, in small.
RunSetup rows_mlp() {
  return {.model = {.name = "mlp:hidden=32", .batch = 20}, .optimizer = "sgd"};
}
RunSetup rows_wrn() {
  return {.model = {.name = "wrn-10-1", .batch = 20, .image = {8, 8, 1}, .norm = Norm::group},
          .optimizer = "sgd",
          .augment = true};
}
RunSetup rows_lstm() {
  return {.model = {.name = "lstm:layers=2,hidden=16,length=6", .batch = 20},
          .optimizer = "sgd",
          .rate = 0.2};
}

RunSetup in_microbatches(RunSetup run, int64_t rows, bool fold = false) {
  run.microbatch = rows;
  run.fold = fold;
  return run;
}

// The largest difference between two runs' weights, statistics and optimizer state, relative to
// the largest element of each tensor.
double difference(TrainingRun& a, TrainingRun& b) {
  double largest = 0;
  const Graph& graph = a.program().graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    const ValueId twin = b.program().graph().find(value.name);
    if (value.role == Role::constant && !twin.valid()) continue;  // an LSTM's first state
    const auto x = a.program().view<float>(make_id<ValueId>(v)), y = b.program().view<float>(twin);
    EXPECT_EQ(x.size(), y.size()) << value.name;
    double scale = 1e-30, apart = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      scale = std::max(scale, std::abs(static_cast<double>(x[i])));
      apart = std::max(apart, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
    largest = std::max(largest, apart / scale);
  }
  return largest;
}

// One step sums the same 20 rows in another order: a handful of roundings of 6e-8, relative to the
// largest element (7e-7 at most is seen). Over five steps a net's own sensitivity lets them grow a
// little (1.4e-6 is seen).
constexpr double kOneStep = 3e-6;
constexpr double kFiveSteps = 1e-5;

TEST(Microbatches, EqualTheWholeBatchWhereRowsAreIndependent) {
  for (const RunSetup& run : {rows_mlp(), rows_wrn(), rows_lstm()}) {
    for (const int64_t steps : {1, 5}) {
      TrainingRun whole(run, {.steps = steps});
      const TrainResult expected = whole.run();
      for (const int64_t rows : {10, 4, 1, 6, 13, 19}) {  // the last three leave a smaller one
        SCOPED_TRACE(fmt::format("{}, {} steps, {} rows", run.model.name, steps, rows));
        TrainingRun parts(in_microbatches(run, rows), {.steps = steps});
        const TrainResult result = parts.run();
        EXPECT_LT(difference(whole, parts), steps == 1 ? kOneStep : kFiveSteps);
        EXPECT_NEAR(result.losses[0], expected.losses[0], 1e-6 * expected.losses[0]);
        EXPECT_NEAR(result.train["accuracy"], expected.train["accuracy"], 0.011);  // one row in 100
        EXPECT_EQ(result.measured_arena, parts.planned().plan().arena);
        EXPECT_EQ(parts.planned().tier, NumericsTier::equivalent);
      }
    }
  }
}

TEST(Microbatches, AWholeBatchKeepsItsBits) {
  for (const RunSetup& run : {mlp_run(), wrn_run(), lstm_run()}) {
    TrainingRun plain(run, {.steps = 3});
    TrainingRun named(in_microbatches(run, run.model.batch), {.steps = 3});
    EXPECT_EQ(plain.run().weights_sha256, named.run().weights_sha256);
    EXPECT_EQ(plain.planned().plan(), named.planned().plan());
    EXPECT_EQ(named.planned().tier, NumericsTier::exact);
  }
}

TEST(Microbatches, WorkWithEveryOptimizer) {
  for (const char* optimizer : {"sgd", "nesterov", "adam", "adamw"}) {
    RunSetup run = rows_mlp();
    run.optimizer = optimizer;
    run.rate = 1e-3;
    TrainingRun whole(run, {.steps = 1}), parts(in_microbatches(run, 6), {.steps = 1});
    whole.run(), parts.run();
    // Adam divides by the root of a squared gradient: where that is all rounding, so is its step.
    const double tolerance = optimizer[0] == 'a' ? 2e-2 : kOneStep;
    EXPECT_LT(difference(whole, parts), tolerance) << optimizer;
  }
}

TEST(Microbatches, FoldedGradientsEqualHeavyBall) {
  for (RunSetup run : {rows_mlp(), rows_wrn(), rows_lstm()}) {
    SCOPED_TRACE(run.model.name);
    TrainingRun plain(run, {.steps = 5});
    plain.run();
    for (const int64_t rows : {20, 5, 6}) {
      TrainingRun folded(in_microbatches(run, rows, true), {.steps = 5});
      folded.run();
      EXPECT_LT(difference(plain, folded), kFiveSteps) << rows;
      EXPECT_EQ(folded.planned().tier, NumericsTier::equivalent);
      // No gradient tensor exists.
      const Graph& graph = folded.planned().graph();
      for (const Value& value : graph.values) EXPECT_NE(value.role, Role::gradient) << value.name;
    }
  }
}

TEST(Microbatches, FoldingKeepsWeightDecay) {
  Recipe recipe;
  recipe.model = rows_mlp().model;
  recipe.optimizer = parse_optimizer("sgd");
  recipe.optimizer.weight_decay = 0.1;
  recipe.on.threads = 1;
  recipe.schedule = {.steps = 4, .kind = RateSchedule::Kind::constant};
  const auto digits = open_dataset("digits");
  const auto weights_after = [&](bool fold, int64_t microbatch) {
    recipe.optimizer.fold = fold;
    recipe.microbatch = microbatch;
    auto planned = std::get<PlannedTraining>(plan_training(recipe));
    const Feeder feeder(*digits, {.seed = 2});
    Trainer trainer(planned, feeder);
    trainer.run({});
    const auto view =
        trainer.program().view<float>(trainer.program().graph().find("hidden1.weight"));
    return std::vector<float>(view.begin(), view.end());
  };
  const std::vector<float> expected = weights_after(false, 0), folded = weights_after(true, 7);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(folded[i], expected[i], 1e-5) << i;
}

TEST(Microbatches, SaveTheGradientsWhereTheyAreFolded) {
  RunSetup run = rows_wrn();
  run.microbatch = 5;
  const Plan plain = TrainingRun(run, {.steps = 1}).planned().plan();
  run.fold = true;
  const Plan folded = TrainingRun(run, {.steps = 1}).planned().plan();
  const auto at = [](const Plan& plan, Role role) {
    return plan.peak_by_role[static_cast<size_t>(role)];
  };
  EXPECT_EQ(at(plain, Role::gradient), at(plain, Role::weight));
  EXPECT_EQ(at(folded, Role::gradient), Bytes(0));
  EXPECT_EQ(plain.arena - folded.arena, at(plain, Role::gradient));
}

TEST(Microbatches, SameSeedSameBits) {
  for (RunSetup run : {mlp_run(), wrn_run(), lstm_run()}) {
    run.microbatch = 5;
    const TrainResult a = TrainingRun(run, {.steps = 3}).run();
    const TrainResult b = TrainingRun(run, {.steps = 3}).run();
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.weights_sha256, b.weights_sha256);
  }
}

TEST(Microbatches, PlannersKeepTheirBits) {
  for (RunSetup run : {mlp_run(), wrn_run(), lstm_run()}) {
    for (const bool fold : {false, true}) {
      SCOPED_TRACE(run.model.name);
      run.optimizer = "sgd";
      run.microbatch = 5;
      run.fold = fold;
      run.planner = "keep_all";
      run.memory = {};
      TrainingRun kept(run, {.steps = 2});
      const std::string expected = kept.run().weights_sha256;
      for (const char* planner : {"drop_cheap", "sqrt_segments", "log_recursive", "chen_budget"}) {
        run.planner = planner;
        EXPECT_EQ(TrainingRun(run, {.steps = 2}).run().weights_sha256, expected) << planner;
      }
      if (run.model.name.starts_with("mlp"))
        continue;  // its activations are not where the memory goes
      run.planner = "optimal";
      run.memory =
          kept.planned().plan().arena - Bytes(64);  // a little less than keeping everything
      TrainingRun fitted(run, {.steps = 2});
      EXPECT_EQ(fitted.run().weights_sha256, expected);
      EXPECT_LE(fitted.planned().plan().arena, *run.memory);
    }
  }
}

// Carried statistics are for microbatches too small for their own: a single row.
TEST(Microbatches, EveryNormalisationLearns) {
  const std::pair<Norm, int64_t> cases[] = {{Norm::batch, 4}, {Norm::group, 4}, {Norm::carried, 1}};
  for (const auto& [norm, rows] : cases) {
    SCOPED_TRACE(name_of(norm));
    RunSetup run = in_microbatches(wrn_run(), rows);
    run.model.norm = norm;
    run.augment = false;
    run.rate = 0.05;
    TrainingRun training(run, {.steps = 150});
    const TrainResult result = training.run();
    EXPECT_EQ(training.planned().tier,
              norm == Norm::group ? NumericsTier::equivalent : NumericsTier::approximate);
    const auto mean_of_ten = [&](size_t first) {
      const auto from = result.losses.begin() + static_cast<ptrdiff_t>(first);
      return std::accumulate(from, from + 10, 0.0) / 10;
    };
    EXPECT_LT(mean_of_ten(140), 0.7 * mean_of_ten(0));
    EXPECT_GT(result.test["accuracy"], 0.5);
  }
}

// Every microbatch moves the running statistics once, a smaller last one too.
TEST(Microbatches, RunningStatisticsMoveOncePerMicrobatch) {
  RunSetup run = wrn_run();
  run.rate = 0;
  run.microbatch = 6;
  TrainingRun training(run, {.steps = 1, .evaluate = false});
  training.run();
  int updates = 0;
  for (TrainingStep::Part* part :
       {&training.step().parts().front(), &training.step().parts().back()}) {
    for (const PlannedCall& step : part->plan().calls) {
      const Node& node = part->model().graph[step.node];
      if (node.op->name == "running_stats_update" && node.name.starts_with("bn.")) {
        updates += part->runs;
      }
    }
  }
  EXPECT_EQ(updates, 3);  // 6, 6, 4
  // Variances stay between what they start from and the data's, so they moved thrice at most:
  // 0.9^3.
  const Graph& graph = training.program().graph();
  const ValueId mean = graph.find("group1.block1.bn1.running_mean");
  ASSERT_TRUE(mean.valid());
  EXPECT_NE(training.program().view<float>(mean)[0], 0);
}

TEST(Microbatches, ResumeToTheSameBits) {
  for (RunSetup run : {wrn_run(), lstm_run(), in_microbatches(rows_mlp(), 6, true)}) {
    if (run.microbatch == 0) run.microbatch = 7;
    const TemporaryFolder folder;
    RunOptions options = {.steps = 6, .save_every = 2, .evaluate = false};
    options.rate.kind = RateSchedule::Kind::constant;
    const TrainResult expected = TrainingRun(run, options).run();
    options.out = folder / "out";
    RunOptions cut = options;
    cut.on_microbatch = [](MicrobatchId which, TrainingStep::Part&) {
      if (which == MicrobatchId{3, 1}) throw std::runtime_error("killed");  // inside of a step
    };
    EXPECT_THROW(TrainingRun(run, cut).run(), std::runtime_error);
    options.resume = true;
    const TrainResult resumed = TrainingRun(run, options).run();
    EXPECT_EQ(resumed.resumed_at, 2);
    EXPECT_EQ(resumed.weights_sha256, expected.weights_sha256);
    // The same run in other microbatches is another run.
    run.microbatch = 5;
    EXPECT_TRUE(throws_saying<UserError>([&] { TrainingRun(run, options); }, "microbatch"));
  }
}

TEST(Microbatches, RowsArriveOnceEach) {
  RunSetup run = rows_mlp();
  run.microbatch = 6;
  std::vector<int32_t> seen, expected;
  const auto note = [](std::vector<int32_t>& labels) {
    return [&labels](MicrobatchId, TrainingStep::Part& part) {
      for (const int32_t label : part.program().view<int32_t>(part.model().feed("label").value)) {
        labels.push_back(label);
      }
    };
  };
  TrainingRun(run, {.steps = 3, .evaluate = false, .on_microbatch = note(seen)}).run();
  run.microbatch = 0;
  TrainingRun(run, {.steps = 3, .evaluate = false, .on_microbatch = note(expected)}).run();
  EXPECT_EQ(seen.size(), 60u);
  EXPECT_EQ(seen, expected);
}

TEST(Microbatches, EveryOneDrawsItsOwnDropout) {
  RunSetup run = mlp_run();
  run.model.batch = 8;
  run.model.dropout = 0.5;
  run.microbatch = 4;
  std::vector<int64_t> drawn;
  TrainingRun(run, {.steps = 2,
                    .evaluate = false,
                    .on_microbatch =
                        [&](MicrobatchId which, TrainingStep::Part& part) {
                          const auto rng = part.program().view<int64_t>(part.model().rng);
                          EXPECT_EQ(rng[1], which.step);
                          drawn.push_back(rng[2]);
                        }})
      .run();
  EXPECT_EQ(drawn, (std::vector<int64_t>{0, 1, 0, 1}));
}

TEST(Microbatches, ALossThatIsNotFiniteIsFoundInsideOfAStep) {
  RunSetup run = rows_mlp();
  run.rate = 1e30;
  run.microbatch = 6;
  TrainingRun training(run, {.steps = 5, .evaluate = false});
  EXPECT_TRUE(
      throws_saying<UserError>([&] { training.run(); }, "not finite at step 2", "the output of"));
}

TEST(Folding, IsRefusedWhereItWouldChangeTheMaths) {
  for (const char* optimizer : {"nesterov", "adam", "adamw"}) {
    OptimizerSpec spec = parse_optimizer(optimizer);
    EXPECT_NO_THROW(check_fold(spec));
    spec.fold = true;
    EXPECT_TRUE(throws_saying<UserError>([&] { check_fold(spec); }, optimizer, "--optimizer sgd"));
  }
  OptimizerSpec spec = parse_optimizer("sgd");
  spec.fold = true;
  EXPECT_NO_THROW(check_fold(spec));
  spec.momentum = 0;
  EXPECT_TRUE(throws_saying<UserError>([&] { check_fold(spec); }, "--momentum"));
}

TEST(Tiers, BeyondWhatIsAllowedAreRefused) {
  Recipe recipe;
  recipe.model = rows_wrn().model;
  recipe.device = "null";
  recipe.microbatch = 5;
  recipe.allow = NumericsTier::equivalent;
  EXPECT_NO_THROW(plan_training(recipe));
  recipe.model.norm = Norm::batch;
  EXPECT_TRUE(
      throws_saying<UserError>([&] { plan_training(recipe); }, "approximate", "--norm group"));
  recipe.model.norm = Norm::group;
  recipe.allow = NumericsTier::exact;
  EXPECT_TRUE(
      throws_saying<UserError>([&] { plan_training(recipe); }, "equivalent", "--microbatch"));
  recipe.microbatch = 0;
  EXPECT_NO_THROW(plan_training(recipe));
}

TEST(SplitBatch, CountsEveryRowOnce) {
  EXPECT_EQ(split_batch(100, 0), (Microbatches{100, 100, 1, 0}));
  EXPECT_EQ(split_batch(100, 30), (Microbatches{100, 30, 3, 10}));
  EXPECT_EQ(split_batch(100, 30).count(), 4);
  EXPECT_EQ(split_batch(100, 10).count(), 10);
  EXPECT_THROW(split_batch(100, 101), UserError);
  EXPECT_THROW(split_batch(100, -1), UserError);
  EXPECT_THROW(split_batch(0, 0), UserError);
}

}  // namespace
}  // namespace thimble
