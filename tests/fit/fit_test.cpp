// One budget: obeyed, monotone, as fast as anything typed by hand, and the same when typed out.
#include "fit/fit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "small_nets.h"

namespace thimble {
namespace {

constexpr int kBudgets = 12;
constexpr const char* kTiers[] = {"exact", "equivalent", "approximate"};

class FitOfNet : public testing::TestWithParam<std::tuple<size_t, const char*>> {
 protected:
  const SmallNet& net() const { return small_nets()[std::get<0>(GetParam())]; }
  Settings said() const { return with_tier(net().said, std::get<1>(GetParam())); }
  Tier tier() const { return parse_tier(std::get<1>(GetParam())); }
};

TEST_P(FitOfNet, BudgetsAreObeyedAndMonotone) {
  Fit fit(recipe_of(said()), said());
  const Bytes least = fit.smallest(tier()).arena;
  double seconds = 0;
  Bytes arena(INT64_MAX);
  for (const Bytes budget : budgets_between(fit.plain().once().arena, least, kBudgets)) {
    const auto result = fit.within(budget);
    ASSERT_TRUE(std::holds_alternative<Fitted>(result)) << budget.count;
    const PlannedTraining& training = std::get<Fitted>(result).training;
    EXPECT_LE(training.plan().arena, budget);
    EXPECT_LE(training.tier, tier());
    EXPECT_GE(training.plan().predicted_seconds, seconds * (1 - 1e-9)) << budget.count;
    EXPECT_LE(training.plan().arena, arena) << budget.count;
    seconds = training.plan().predicted_seconds;
    arena = training.plan().arena;
  }
  EXPECT_TRUE(std::holds_alternative<DoesNotFit>(fit.within(least - Bytes(1))));
}

// What could have been typed: every policy as it is, and every technique alone, with all that `optimal`
// makes of it.
TEST_P(FitOfNet, NothingNamedIsFaster) {
  Fit fit(recipe_of(said()), said());
  struct Rival {
    std::string name;
    double seconds;
    Bytes arena;
  };
  std::vector<Rival> rivals;
  for (const Policy* policy : all_policies()) {
    PlanRequest request = fit.plain().request();
    request.policy = std::string(policy->name);
    const Plan plan = std::get<Plan>(make_plan(request));
    rivals.push_back({request.policy, plan.predicted_seconds, plan.arena});
  }
  const Bytes least = fit.smallest(tier()).arena;
  const auto backend = make_backend("null", 1);
  std::vector<std::unique_ptr<FitStep>> singles;
  const Recipe typed = recipe_of(said());
  for (const auto& changes : choices_for(typed, said(), tier(), fit.plain().graph())) {
    for (const Change& change : changes) {
      try {
        singles.push_back(std::make_unique<FitStep>(changed(typed, {change}), *backend, 1));
      } catch (const UserError&) {
      }
    }
  }
  for (const Bytes budget : budgets_between(fit.plain().once().arena, least, kBudgets)) {
    const auto chosen = fit.choose(budget);
    ASSERT_TRUE(chosen) << budget.count;
    const auto check = [&](const std::string& name, double seconds, double harm) {
      // The more faithful may take a twentieth longer.
      const bool gentler = chosen->step->harm() < harm;
      EXPECT_LE(chosen->seconds, seconds * (gentler ? kNearTie : 1) * (1 + 1e-9))
          << name << " within " << budget.count;
    };
    for (const Rival& rival : rivals) {
      if (rival.arena <= budget) check(rival.name, rival.seconds, 0);
    }
    for (const auto& single : singles) {
      const auto pick = single->within(budget);
      const std::string& what = single->candidate().changes.front().what;
      if (pick) check(what, pick->seconds, single->harm());
    }
  }
}

TEST_P(FitOfNet, TypedOutItIsTheSamePlan) {
  Fit fit(recipe_of(said()), said());
  const Bytes most = fit.plain().once().arena;
  const Bytes least = fit.smallest(tier()).arena;
  for (const Bytes budget : {most, Bytes((most.count + least.count) / 2), least}) {
    const auto result = fit.within(budget);
    ASSERT_TRUE(std::holds_alternative<Fitted>(result));
    const PlannedTraining& chosen = std::get<Fitted>(result).training;
    Recipe typed;
    configure(typed, settings_of(chosen.recipe));
    EXPECT_FALSE(typed.fit);
    const auto again = plan_training(typed);
    ASSERT_TRUE(std::holds_alternative<PlannedTraining>(again));
    EXPECT_EQ(std::get<PlannedTraining>(again).plan(), chosen.plan());
    EXPECT_EQ(to_json(std::get<PlannedTraining>(again).recipe), to_json(chosen.recipe));
  }
}

TEST_P(FitOfNet, SharesAddUp) {
  Fit fit(recipe_of(said()), said());
  const Bytes least = fit.smallest(tier()).arena;
  const auto result = fit.within(least);
  const auto& [training, report] = std::get<Fitted>(result);
  Bytes saved;
  double paid = 0;
  for (const TechniqueShare& share : report.shares) {
    saved += share.saved;
    paid += share.ms_paid;
    EXPECT_FALSE(share.flags.empty());
  }
  EXPECT_EQ(report.plain_arena - saved, training.plan().arena);
  EXPECT_NEAR(report.plain_ms + paid, training.plan().predicted_seconds * 1e3, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Zoo, FitOfNet,
                         testing::Combine(testing::Range<size_t>(0, 5), testing::ValuesIn(kTiers)),
                         [](const auto& test) {
                           return small_nets()[std::get<0>(test.param)].name + "_" +
                                  std::get<1>(test.param);
                         });

// A bound that is none would let the choice depend on the budget.
TEST(FitStep, NoPlanIsBelowItsBounds) {
  const auto backend = make_backend("null", 1);
  for (const SmallNet& net : small_nets()) {
    const Settings said = with_tier(net.said, "approximate");
    const Recipe typed = recipe_of(said);
    Fit fit(typed, said);
    for (const auto& changes : choices_for(typed, said, Tier::approximate, fit.plain().graph())) {
      try {
        FitStep step(changed(typed, {changes.back()}), *backend, 1);
        const Bytes least = step.smallest().arena;
        EXPECT_GE(least, step.least_arena());
        for (const Bytes budget : budgets_between(step.once().arena, least, 8)) {
          const auto pick = step.within(budget);
          ASSERT_TRUE(pick);
          EXPECT_GE(pick->seconds, step.least_seconds(budget) * (1 - 1e-9))
              << net.name << ", " << changes.back().what << " within " << budget.count;
        }
      } catch (const UserError&) {
      }
    }
  }
}

TEST(Fit, WhatWasTypedStays) {
  Settings said = with_tier(small_nets()[2].said, "approximate");
  said["microbatch"] = 12;
  said["precision"] = "fp32";
  Fit fit(recipe_of(said), said);
  const auto result = fit.within(kLeastMemory);
  const Recipe& recipe = std::get<Fitted>(result).training.recipe;
  EXPECT_EQ(recipe.microbatch, 12);
  EXPECT_EQ(recipe.model.storage, DType::f32);
  EXPECT_TRUE(recipe.optimizer.fold);  // of which nothing was said
  EXPECT_EQ(recipe.optimizer.state_bits, 8);
}

TEST(Fit, IsEquivalentWhereNothingElseIsSaid) {
  const SmallNet& net = small_nets()[1];  // batch norm: microbatches would have other statistics
  Fit fit(recipe_of(net.said), net.said);
  EXPECT_EQ(fit.allow(), Tier::equivalent);
  const auto result = fit.within(kLeastMemory);
  EXPECT_EQ(std::get<Fitted>(result).training.tier, Tier::exact);
  EXPECT_EQ(std::get<Fitted>(result).training.microbatches.count(), 1);
}

TEST(Fit, ATypedTechniqueMayGoBeyondTheTierOfTheSearch) {
  Settings said = small_nets()[0].said;
  said["precision"] = "bf16";
  Fit fit(recipe_of(said), said);
  const auto result = fit.within(kLeastMemory);
  const PlannedTraining& training = std::get<Fitted>(result).training;
  EXPECT_EQ(training.tier, Tier::approximate);
  EXPECT_EQ(training.recipe.optimizer.state_bits, 32);
  said["allow"] = "equivalent";
  EXPECT_THROW(Fit(recipe_of(said), said).within(kLeastMemory), UserError);
}

TEST(Fit, WhatDoesNotFitNamesTheLeastOfEveryTier) {
  const SmallNet& net = small_nets()[2];
  Fit fit(recipe_of(net.said), net.said);
  const auto result = fit.within(Bytes(64));
  const DoesNotFit& fault = std::get<DoesNotFit>(result);
  ASSERT_EQ(fault.floors.size(), 3u);
  EXPECT_GT(fault.floors[0].least, fault.floors[1].least);
  EXPECT_GT(fault.floors[1].least, fault.floors[2].least);
  EXPECT_EQ(fault.min_bytes, fault.floors[1].least);
  EXPECT_NE(fault.floors[1].flags.find("--fold"), std::string::npos) << fault.floors[1].flags;
  ASSERT_FALSE(fault.unlock.empty());
  EXPECT_NE(fault.unlock[0].find("--allow approximate"), std::string::npos) << fault.unlock[0];
  EXPECT_FALSE(fault.why.empty());
}

TEST(Candidates, RowsDivideTheBatchWhereTheyCan) {
  EXPECT_EQ(rows_to_try(100, 1), (std::vector<int64_t>{50, 25, 20, 10, 5, 4, 2, 1}));
  EXPECT_EQ(rows_to_try(100, 4), (std::vector<int64_t>{50, 25, 20, 10, 5, 4}));
  EXPECT_EQ(rows_to_try(64, 1), (std::vector<int64_t>{32, 16, 8, 4, 2, 1}));
  EXPECT_EQ(rows_to_try(7, 1), (std::vector<int64_t>{4, 2, 1}));
  EXPECT_TRUE(rows_to_try(1, 1).empty());
}

TEST(Candidates, HarmGoesByTheWorstKind) {
  const Settings said = with_tier(small_nets()[2].said, "approximate");
  const Recipe typed = recipe_of(said);
  Fit fit(typed, said);
  const Choices choices = choices_for(typed, said, Tier::approximate, fit.plain().graph());
  // All of the milder kinds at their strongest are less than one of a later kind.
  const std::vector<std::string_view> order = {"precision", "state", "codec", "sparsity"};
  double milder = 0;
  for (const std::string_view technique : order) {
    for (const auto& changes : choices) {
      if (changes.front().technique != technique) continue;
      const double least = technique == "codec" ? 100 : changes.front().harm;
      EXPECT_GT(least, milder) << technique;
      milder += changes.back().harm;
    }
  }
}

}  // namespace
}  // namespace thimble
