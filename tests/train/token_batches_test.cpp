// Batches by padded tokens: a variant for each length, rows by its length, an order by the seed.
#include <map>

#include "../file_support.h"
#include "plan/verify/verify_shared_arena.h"
#include "select/choose.h"
#include "support/runs.h"
#include "train/token_model.h"
#include "weights/checkpoint.h"

namespace thimble {
namespace {

Recipe by_tokens(int64_t tokens, int64_t at_once = 0) {
  Recipe recipe = token_recipe({5, 8, 12}, 1);
  recipe.tokens = tokens;
  recipe.microbatch_tokens = at_once;
  recipe.schedule = {.steps = 12, .rate = 0.02, .kind = RateSchedule::Kind::constant};
  recipe.seed = 4;
  recipe.save_every = steps_span(4);
  recipe.evaluate_every = {0};
  return recipe;
}

struct Ended {
  std::string bits;
  TrainResult result;
};

Ended train(const Recipe& recipe, const Tokens& data, TrainOptions options = {}) {
  PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
  const Feeder feeder(data, feed_options(planned.recipe));
  Trainer trainer(planned, feeder, options);
  const TrainResult result = trainer.run({});
  EXPECT_LE(result.measured_arena, planned.plan().arena);
  return {persistent_bytes(trainer.program()), result};
}

TEST(TokenBatches, RowsGoByLength) {
  const auto planned = std::get<PlannedTraining>(plan_training(by_tokens(50)));
  ASSERT_EQ(planned.steps.size(), 3u);
  std::vector<StepShape> shapes;
  for (const auto& variant : planned.steps) {
    shapes.push_back(variant->shape);
    EXPECT_LE(variant->plan.arena, planned.plan().arena);
    EXPECT_EQ(
        find_disagreement(planned.graph(), planned.plan(), variant->model.graph, variant->plan),
        std::nullopt);
  }
  // 4 rows of 12 are 48 tokens; 10 of 5 are 50 and take most.
  EXPECT_EQ(shapes, (std::vector<StepShape>{{10, 5}, {4, 12}, {6, 8}}));
  EXPECT_EQ(plan_evaluation(planned).size(), 3u);
}

// In any order of planning, the arena holds them all, and none is recomputed for want of it.
TEST(TokenBatches, TheOneThatTakesMostGoesFirst) {
  for (const int64_t tokens : {40, 48, 50, 55, 60, 96, 100}) {
    const auto planned = std::get<PlannedTraining>(plan_training(by_tokens(tokens)));
    for (const auto& variant : planned.steps) {
      EXPECT_EQ(variant->plan.policy, "keep_all");
      EXPECT_LE(variant->plan.arena, planned.plan().arena);
    }
  }
}

TEST(TokenBatches, EveryStepIsOfOneLength) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  const Recipe recipe = by_tokens(50);
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  const Feeder feeder(data, feed_options(planned.recipe));
  const auto arena = planned.backend().allocate(planned.plan().arena);
  TrainingStep step(planned, feeder, *arena, 4);
  std::map<int64_t, int> lengths;
  for (int64_t s = 0; s < feeder.steps_per_epoch(0); ++s) {
    const StepShape& shape = step.part_of({s, 0}).variant().shape;
    EXPECT_EQ(shape.length, feeder.bucket(s)->length);
    EXPECT_EQ(shape.rows, feeder.bucket(s)->rows);
    ++lengths[shape.length];
  }
  // 40 records of 5 at most: 4 batches. 20 of 8: 3, and 2 go on. 22 of 12: 5, and 2 wait.
  EXPECT_EQ(lengths, (std::map<int64_t, int>{{5, 4}, {8, 3}, {12, 5}}));
}

// Rows of a batch go by its length alone, and so does which records it has.
TEST(TokenBatches, WhatIsComputedAtOnceDoesNotChooseTheRecords) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  for (const int64_t tokens : {48, 50, 61}) {
    const Recipe whole = by_tokens(tokens);
    const Feeder expected(data, feed_options(whole));
    for (const int64_t at_once : {48, 25, 24, 17, 12, 5, 1}) {
      const Recipe parts = by_tokens(tokens, at_once);
      EXPECT_EQ(token_batches(parts), token_batches(whole)) << at_once;
      const Feeder feeder(data, feed_options(parts));
      ASSERT_EQ(feeder.steps_per_epoch(0), expected.steps_per_epoch(0));
      for (int64_t s = 0; s < feeder.steps_per_epoch(0); ++s) {
        ASSERT_EQ(*feeder.bucket(s), *expected.bucket(s));
        const Microbatches all = microbatches_of(parts, feeder.bucket(s)->length);
        int64_t rows = 0;
        for (int m = 0; m < all.count(); ++m) {
          EXPECT_EQ(all.first_of(m), rows);
          rows += all.rows_of(m);
          EXPECT_LE(all.rows_of(m) * feeder.bucket(s)->length,
                    std::max(at_once, feeder.bucket(s)->length));
        }
        EXPECT_EQ(rows, feeder.bucket(s)->rows);
      }
    }
  }
}

// Each rank has as many rows, in as many turns.
TEST(TokenBatches, RanksShareEveryMicrobatch) {
  Recipe recipe = by_tokens(100, 20);
  recipe.ranks.count = 3;
  for (const StepShape& batch : token_batches(recipe)) {
    const Microbatches all = microbatches_of(recipe, batch.length);
    EXPECT_EQ(all.count() % 3, 0);
    std::vector<int64_t> rows(3);
    int64_t next = 0;
    for (int m = 0; m < all.count(); ++m) {
      EXPECT_EQ(all.first_of(m), next);
      EXPECT_EQ(all.rows_of(m), all.rows_of(m / 3 * 3));  // of a turn
      next += all.rows_of(m);
      rows[static_cast<size_t>(m % 3)] += all.rows_of(m);
    }
    EXPECT_EQ(next, batch.rows);
    EXPECT_EQ(rows, std::vector<int64_t>(3, batch.rows / 3));
  }
}

TEST(TokenBatches, MicrobatchesAddUpToTheBatch) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  for (const int64_t tokens : {48, 50}) {
    const Ended whole = train(by_tokens(tokens), data);
    EXPECT_LT(whole.result.losses.back(), whole.result.losses.front());
    EXPECT_GT(whole.result.test["token_accuracy"], 0);
    for (const int64_t at_once : {24, 20, 5}) {
      SCOPED_TRACE(testing::Message() << tokens << " tokens, at once " << at_once);
      EXPECT_EQ(std::get<PlannedTraining>(plan_training(by_tokens(tokens, at_once))).tier,
                NumericsTier::equivalent);
      const Ended parts = train(by_tokens(tokens, at_once), data);
      ASSERT_EQ(parts.result.losses.size(), 12u);
      for (size_t s = 0; s < 12; ++s) {  // the same sums, rounded otherwise
        EXPECT_NEAR(parts.result.losses[s], whole.result.losses[s], 2e-5);
      }
    }
  }
}

// A budget that has room for a part of the batch at a time trains on the same records.
TEST(TokenBatches, ABudgetDoesNotChooseTheRecords) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  const Ended whole = train(by_tokens(50), data);
  Recipe recipe = by_tokens(50);
  recipe.memory = kLeastMemory;
  recipe.fit = true;
  auto chosen = choose_and_plan(recipe, {{"allow", "equivalent"}}, Machine::open(recipe));
  PlannedTraining& planned = std::get<PlannedTraining>(chosen);
  EXPECT_GT(planned.recipe.microbatch_tokens, 0);
  const Feeder feeder(data, feed_options(planned.recipe));
  const TrainResult result = Trainer(planned, feeder).run({});
  ASSERT_EQ(result.losses.size(), 12u);
  for (size_t s = 0; s < 12; ++s) EXPECT_NEAR(result.losses[s], whole.result.losses[s], 2e-5);
}

// Less of the arena was touched than was planned, and the result says of what there was no batch.
TEST(TokenBatches, SaysWhichLengthsWereNotMet) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  Recipe recipe = by_tokens(50);
  recipe.evaluate = false;
  const Ended all = train(recipe, data);
  EXPECT_TRUE(all.result.not_met.empty());
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  EXPECT_EQ(all.result.measured_arena, planned.plan().arena);
  recipe.schedule.steps = 1;
  const Ended one = train(recipe, data);
  EXPECT_EQ(one.result.not_met.size(), 2u);
  if (one.result.measured_arena < planned.plan().arena) {
    EXPECT_EQ(std::ranges::count(one.result.not_met, planned.full().shape), 1);
  }
}

TEST(TokenBatches, AResumedRunHasTheSameBits) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  for (const int64_t at_once : {0, 24}) {
    const TemporaryFolder folder;
    const Recipe recipe = by_tokens(48, at_once);
    const Ended whole = train(recipe, data);
    int asked = 0;
    const TrainOptions stopped = {.out = folder / "run", .stop = [&] { return ++asked == 7; }};
    EXPECT_TRUE(train(recipe, data, stopped).result.stopped);
    const Ended resumed = train(recipe, data, {.out = folder / "run", .resume = true});
    EXPECT_EQ(resumed.result.resumed_at, 7);
    EXPECT_EQ(resumed.bits, whole.bits);
  }
}

TEST(TokenBatches, OtherTokensAreAnotherRun) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  const TemporaryFolder folder;
  train(by_tokens(48), data, {.out = folder / "run"});
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { train(by_tokens(50), data, {.out = folder / "run", .resume = true}); }, "tokens = 48",
      "this run has 50"));
}

TEST(TokenBatches, CheckpointsThatAreKept) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  const TemporaryFolder folder;
  Recipe recipe = by_tokens(48);
  recipe.save_every = steps_span(2);
  recipe.keep_checkpoints = 3;
  train(recipe, data, {.out = folder / "run"});
  const std::vector<std::string> kept = kept_checkpoints(folder / "run");
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_TRUE(kept[0].ends_with("step-00000012"));
  EXPECT_TRUE(kept[2].ends_with("step-00000008"));
  recipe.keep_checkpoints = 1;
  recipe.schedule.steps = 14;
  train(recipe, data, {.out = folder / "run", .resume = true});
  EXPECT_EQ(kept_checkpoints(folder / "run").size(), 1u);
}

}  // namespace
}  // namespace thimble
