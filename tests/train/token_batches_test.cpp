// Batches by padded tokens: a variant for each length, rows by its length, an order by the seed.
#include <map>

#include "../file_support.h"
#include "pipeline/variant_order.h"
#include "plan/verify/verify_shared_arena.h"
#include "support/runs.h"
#include "train/checkpoint.h"
#include "train/token_model.h"

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
  ASSERT_EQ(planned.variants.size(), 3u);
  std::vector<VariantShape> shapes;
  for (const auto& variant : planned.variants) {
    shapes.push_back(variant->shape);
    EXPECT_LE(variant->plan.arena, planned.plan().arena);
    EXPECT_EQ(
        find_disagreement(planned.graph(), planned.plan(), variant->model.graph, variant->plan),
        std::nullopt);
  }
  // 4 rows of 12 are 48 tokens; 10 of 5 are 50 and take most.
  EXPECT_EQ(shapes, (std::vector<VariantShape>{{10, 5}, {4, 12}, {6, 8}}));
  EXPECT_EQ(plan_evaluation(planned).size(), 3u);
}

// Whatever the order of planning, the arena holds them all, and none is computed again for want of it.
TEST(TokenBatches, TheOneThatTakesMostGoesFirst) {
  for (const int64_t tokens : {40, 48, 50, 55, 60, 96, 100}) {
    const auto planned = std::get<PlannedTraining>(plan_training(by_tokens(tokens)));
    for (const auto& variant : planned.variants) {
      EXPECT_EQ(variant->plan.policy, "keep_all");
      EXPECT_LE(variant->plan.arena, planned.plan().arena);
    }
  }
}

// In least memory each may take a little more than the one before.
TEST(TokenBatches, EveryLengthMayHaveToGoFirst) {
  std::vector<VariantShape> shapes;
  for (int64_t length = 8; length >= 1; --length) shapes.push_back({.rows = 1, .length = length});
  VariantOrder order(shapes);
  for (int64_t arena = 1; arena < 8; ++arena) {
    ASSERT_FALSE(order.at_last());
    order.put_first(7, Bytes(arena));
    EXPECT_EQ(order.shapes()[0].length, arena);
  }
}

TEST(TokenBatches, EveryStepIsOfOneLength) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  const Recipe recipe = by_tokens(50);
  const auto planned = std::get<PlannedTraining>(plan_training(recipe));
  const Feeder feeder(data, feed_options(planned.recipe));
  const auto arena = planned.backend->allocate(planned.plan().arena);
  TrainingStep step(planned, feeder, *arena, 4);
  std::map<int64_t, int> lengths;
  for (int64_t s = 0; s < feeder.steps_per_epoch(0); ++s) {
    const VariantShape& shape = step.part_of({s, 0}).variant().shape;
    EXPECT_EQ(shape.length, feeder.bucket(s)->length);
    EXPECT_EQ(shape.rows, feeder.bucket(s)->rows);
    ++lengths[shape.length];
  }
  // 40 records of 5 at most: 4 batches. 20 of 8: 3, and 2 go on. 22 of 12: 5, and 2 wait.
  EXPECT_EQ(lengths, (std::map<int64_t, int>{{5, 4}, {8, 3}, {12, 5}}));
}

TEST(TokenBatches, MicrobatchesAddUpToTheBatch) {
  const Tokens data({5, 8, 12, 3}, 12, 80, 9);
  const Ended whole = train(by_tokens(48), data);
  const Ended parts = train(by_tokens(48, 24), data);
  ASSERT_EQ(parts.result.losses.size(), 12u);
  // The same rows only where both come to the same number: 24 / 8 and 24 / 12 have no rest.
  EXPECT_EQ(token_batches(by_tokens(48, 24)).front().rows, 4);
  EXPECT_LT(parts.result.losses.back(), parts.result.losses.front());
  EXPECT_LT(whole.result.losses.back(), whole.result.losses.front());
  EXPECT_GT(whole.result.test["token_accuracy"], 0);
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
