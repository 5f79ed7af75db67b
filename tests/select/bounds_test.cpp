// Bounds of a step against slow answers: the least time within a budget is that of a fractional knapsack. No plan is
// below any of them, whatever size the last micro-batch has and however fine the budgets are.
#include "select/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "select/step_option.h"
#include "small_nets.h"

namespace thimble {
namespace {

// The cheapest way to free `beyond` bytes, of each value a part: some values whole and at most one in part.
double cheapest(const std::vector<Bounds::Kept>& kept, int64_t beyond) {
  double best = kNever;
  for (uint32_t whole = 0; whole < 1u << kept.size(); ++whole) {
    double seconds = 0;
    int64_t left = beyond;
    for (size_t i = 0; i < kept.size(); ++i) {
      if ((whole >> i & 1u) == 0) continue;
      seconds += kept[i].seconds;
      left -= kept[i].bytes.count;
    }
    if (left <= 0) best = std::min(best, seconds);
    for (size_t i = 0; i < kept.size() && left > 0; ++i) {
      if ((whole >> i & 1u) != 0 || kept[i].bytes.count < left) continue;
      const double share = static_cast<double>(left) / static_cast<double>(kept[i].bytes.count);
      best = std::min(best, seconds + share * kept[i].seconds);
    }
  }
  return best;
}

TEST(Bounds, TheLeastTimeIsThatOfAFractionalKnapsack) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto whole = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    Bounds bounds;
    bounds.without_recompute.seconds = whole(0, 20);
    bounds.persistent = Bytes(whole(0, 30));
    bounds.carried = Bytes(whole(0, 10));
    bounds.kept_always = Bytes(whole(0, 10));
    for (int count = whole(0, 7); count > 0; --count) {
      bounds.kept.push_back({static_cast<double>(whole(0, 9)), Bytes(whole(1, 12))});
    }
    std::ranges::stable_sort(bounds.kept, {}, [](const Bounds::Kept& kept) {
      return kept.seconds / static_cast<double>(kept.bytes.count);
    });
    const int64_t stays = bounds.persistent.count + bounds.carried.count + bounds.kept_always.count;
    int64_t all = stays;
    for (const Bounds::Kept& kept : bounds.kept) all += kept.bytes.count;
    for (int64_t budget = 0; budget <= all + 2; ++budget) {
      const double got = bounds.least_seconds(Bytes(budget));
      if (budget < stays) {
        EXPECT_EQ(got, kNever) << budget;
        continue;
      }
      const double expected = bounds.without_recompute.seconds +
                              cheapest(bounds.kept, std::max<int64_t>(0, all - budget));
      EXPECT_NEAR(got, expected, 1e-12 * (1 + expected)) << budget;
    }
  }
}

Recipe uneven(const SmallNet& net, int64_t microbatch) {
  Recipe recipe = recipe_of(with_tier(net.explicit_settings, "approximate"));
  recipe.microbatch = microbatch;
  recipe.planner = "optimal";
  return recipe;
}

// A recomputed value is recomputed in every micro-batch. The bound leaves out the time that this takes in a smaller
// last one.
TEST(Bounds, CountRecomputationInFullMicrobatchesOnly) {
  const SmallNet net = small_nets()[0];  // of 12 rows
  for (const auto& [rows, alike, count] : {std::tuple(5, 2, 3), {4, 3, 3}, {7, 1, 2}}) {
    SCOPED_TRACE(rows);
    const Recipe recipe = uneven(net, rows);
    const auto machine = Machine::open(recipe);
    const StepOption option({.recipe = recipe}, *machine);
    const Step step = build_step(recipe, largest_shape(recipe), *machine);
    double listed = 0, seconds = 0;
    for (const Bounds::Kept& kept : option.bounds().kept) listed += kept.seconds;
    for (const Bounds::Kept& kept : bounds_of(step, 0).kept) seconds += kept.seconds;
    ASSERT_GT(listed, 0);
    EXPECT_NEAR(listed * count, seconds * alike, 1e-12 * seconds * alike);
  }
}

// Many budgets, near each other, of a step whose last micro-batch is smaller.
TEST(Bounds, NoPlanOfAnUnevenStepIsBelowThem) {
  for (const auto& [number, rows] : {std::pair<size_t, int64_t>(0, 5), {0, 7}, {2, 11}}) {
    if (kSanitized && number == 2) continue;
    const SmallNet& net = small_nets()[number];
    SCOPED_TRACE(net.name);
    const Recipe recipe = uneven(net, rows);
    const auto machine = Machine::open(recipe);
    StepOption step({.recipe = recipe}, *machine);
    const Bytes least = step.smallest().arena;
    EXPECT_GE(least, step.least_arena());
    double before = 0;
    for (const Bytes budget : budgets_between(step.without_recompute().arena, least, 60)) {
      const auto pick = step.fastest_within(budget);
      ASSERT_TRUE(pick) << budget.count;
      EXPECT_LE(pick->arena, budget);
      EXPECT_GE(pick->seconds, step.least_seconds(budget) * (1 - 1e-9)) << budget.count;
      EXPECT_GE(step.least_seconds(budget), before) << "less memory is not faster";
      before = step.least_seconds(budget);
    }
  }
}

}  // namespace
}  // namespace thimble
