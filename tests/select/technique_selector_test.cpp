// One budget: obeyed, monotone, as fast as anything typed by hand, and the same when typed out.
#include "select/technique_selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/attempt.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "small_nets.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

constexpr int kBudgets = kSanitized ? 3 : 12;

struct Case {
  size_t net;
  const char* tier;
};

// One selector serves all of a case's tests: its planners are made once.
class FitOfNet : public testing::TestWithParam<Case> {
 protected:
  Settings explicit_settings() const {
    return with_tier(small_nets()[GetParam().net].explicit_settings, GetParam().tier);
  }
  NumericsTier tier() const { return parse_tier(GetParam().tier); }
};

// Everything that could have been typed: every policy as it is, and every technique alone, with all
// that `optimal` makes of it.
class Rivals {
 public:
  Rivals(TechniqueSelector& fit, const Recipe& requested, const Settings& explicit_settings,
         NumericsTier tier)
      : machine_(Machine::open(requested)) {
    for (const Policy* policy : all_policies()) {
      PlanRequest request = fit.requested().step().request();
      request.policy = std::string(policy->name);
      const Plan plan = std::get<Plan>(make_plan(request));
      plans_.push_back({plan.predicted_seconds, plan.arena});
    }
    for (const auto& changes :
         choices_for(requested, explicit_settings, tier, fit.requested().step().model.graph,
                     machine_->backend())) {
      for (const Change& change : changes) {
        const auto candidate = with_changes(requested, {change});
        if (!candidate) continue;
        auto step = if_allowed([&] { return std::make_unique<StepOption>(*candidate, *machine_); });
        if (step) singles_.push_back(*std::move(step));
      }
    }
  }

  // The more faithful may take a twentieth longer.
  void expect_none_faster(const PlanPoint& chosen, const Candidate& ours, Bytes budget) {
    const auto faithful = [](const Candidate& c) { return std::pair(c.tier, c.risk); };
    const auto check = [&](const std::string& name, double seconds, const Candidate& theirs) {
      const double slack = faithful(ours) < faithful(theirs) ? kNearTie : 1;
      EXPECT_LE(chosen.seconds, seconds * slack * (1 + 1e-9)) << name << " in " << budget.count;
    };
    for (const PlanPoint& plan : plans_) {
      if (plan.arena <= budget) check("a policy", plan.seconds, {});
    }
    for (const auto& single : singles_) {
      if (single->least_seconds(budget) >= chosen.seconds) continue;
      const auto pick = single->fastest_within(budget);
      if (pick) check(single->candidate().changes[0].what, pick->seconds, single->candidate());
    }
  }

 private:
  std::shared_ptr<Machine> machine_;
  std::vector<PlanPoint> plans_;
  std::vector<std::unique_ptr<StepOption>> singles_;
};

TechniqueSelector selector_of(const Settings& explicit_settings) {
  const Recipe recipe = recipe_of(explicit_settings);
  return {recipe, explicit_settings, Machine::open(recipe)};
}

// On a CPU's thread, with its modelled times and scratch.
Recipe modelled(const Settings& explicit_settings) {
  Recipe recipe = recipe_of(explicit_settings);
  recipe.device = "cpu";
  recipe.on.threads = 1;
  recipe.costs = "modelled";
  return recipe;
}

void expect_shares_add_up(const PlannedTraining& fitted) {
  Bytes saved;
  double paid = 0;
  for (const TechniqueGain& share : fitted.report->gains) {
    saved += share.saved;
    paid += share.ms_paid;
    EXPECT_FALSE(share.flags.empty());
  }
  EXPECT_EQ(fitted.report->plain_arena - saved, fitted.plan().arena);
  EXPECT_NEAR(fitted.report->plain_ms + paid, priced_as_a_whole(fitted).predicted_seconds * 1e3,
              1e-6);
}

// Typed out it is the same plan.
void expect_the_same_typed_out(const PlannedTraining& chosen) {
  Recipe requested;
  configure(requested, settings_of(chosen.recipe));
  EXPECT_FALSE(requested.fit);
  const auto again = plan_training(requested);
  ASSERT_TRUE(std::holds_alternative<PlannedTraining>(again));
  EXPECT_EQ(std::get<PlannedTraining>(again).plan(), chosen.plan());
  EXPECT_EQ(to_json(std::get<PlannedTraining>(again).recipe), to_json(chosen.recipe));
}

TEST_P(FitOfNet, ObeysBudgetsAndNothingTypedByHandIsFaster) {
  const Recipe requested = recipe_of(explicit_settings());
  TechniqueSelector fit(requested, explicit_settings(), Machine::open(requested));
  Rivals rivals(fit, fit.recipe(), explicit_settings(), tier());
  const Bytes least = fit.smallest(tier()).arena;
  double seconds = 0;
  Bytes arena(INT64_MAX);
  int number = 0;
  for (const Bytes budget :
       budgets_between(fit.requested().without_recompute().arena, least, kBudgets)) {
    const auto chosen = fit.choose(budget);
    ASSERT_TRUE(chosen) << budget.count;
    EXPECT_LE(chosen->arena, budget);
    EXPECT_GE(chosen->seconds, seconds) << budget.count;
    EXPECT_LE(chosen->arena, arena) << budget.count;
    seconds = chosen->seconds;
    arena = chosen->arena;
    rivals.expect_none_faster(*chosen, fit.option(*chosen, tier()).candidate(), budget);
    if (number++ % 5 != 0 && budget != least) continue;
    const auto result = fit.plan(budget);
    ASSERT_TRUE(std::holds_alternative<PlannedTraining>(result)) << budget.count;
    const auto& fitted = std::get<PlannedTraining>(result);
    EXPECT_EQ(fitted.plan().arena, chosen->arena);
    EXPECT_LE(fitted.tier, tier());
    expect_shares_add_up(fitted);
    expect_the_same_typed_out(fitted);
  }
  EXPECT_FALSE(fit.choose(least - Bytes(1)));
}

INSTANTIATE_TEST_SUITE_P(Zoo, FitOfNet,
                         testing::Values(Case{0, "exact"}, Case{0, "equivalent"},
                                         Case{0, "approximate"}, Case{1, "equivalent"},
                                         Case{2, "equivalent"}, Case{2, "approximate"},
                                         Case{3, "equivalent"}, Case{4, "equivalent"}),
                         [](const auto& test) {
                           return small_nets()[test.param.net].name + "_" + test.param.tier;
                         });

// A bound that is none would let the choice depend on the budget.
TEST(StepOption, NoPlanIsBelowItsBounds) {
  for (const SmallNet& net : {small_nets()[0], small_nets()[2]}) {
    const Settings explicit_settings = with_tier(net.explicit_settings, "approximate");
    const Recipe requested = recipe_of(explicit_settings);
    const auto machine = Machine::open(requested);
    TechniqueSelector fit(requested, explicit_settings, machine);
    for (const auto& changes :
         choices_for(requested, explicit_settings, NumericsTier::approximate,
                     fit.requested().step().model.graph, machine->backend())) {
      try {
        StepOption step(with_changes(requested, {changes.back()}).value(), *machine);
        const Bytes least = step.smallest().arena;
        EXPECT_GE(least, step.least_arena());
        for (const Bytes budget : budgets_between(step.without_recompute().arena, least, 8)) {
          const auto pick = step.fastest_within(budget);
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
  Settings explicit_settings = with_tier(small_nets()[2].explicit_settings, "approximate");
  explicit_settings["microbatch"] = kSanitized ? 1 : 12;
  explicit_settings["precision"] = "fp32";
  TechniqueSelector fit(recipe_of(explicit_settings), explicit_settings,
                        Machine::open(recipe_of(explicit_settings)));
  const auto result = fit.plan(kLeastMemory);
  const Recipe& recipe = std::get<PlannedTraining>(result).recipe;
  EXPECT_EQ(recipe.microbatch, kSanitized ? 1 : 12);
  EXPECT_EQ(recipe.model.storage, DType::f32);
  EXPECT_LT(recipe.sparsity.density, 1);  // of which nothing was said
  EXPECT_GT(recipe.sparsity.density, 0);
}

TEST(Fit, IsEquivalentWhereNothingElseIsSaid) {
  const SmallNet& net = small_nets()[1];  // batch norm: microbatches would have other statistics
  TechniqueSelector fit(recipe_of(net.explicit_settings), net.explicit_settings,
                        Machine::open(recipe_of(net.explicit_settings)));
  EXPECT_EQ(fit.allow(), NumericsTier::equivalent);
  const auto result = fit.plan(kLeastMemory);
  EXPECT_EQ(std::get<PlannedTraining>(result).tier, NumericsTier::exact);
  EXPECT_EQ(std::get<PlannedTraining>(result).microbatches.count(), 1);
}

// Such a plan computes things again in any budget.
TEST(Fit, APolicyThatWasTypedPlansEveryCombination) {
  for (const auto& [tier, which] :
       {std::pair("exact", NumericsTier::exact), {"approximate", NumericsTier::approximate}}) {
    Settings explicit_settings = with_tier(small_nets()[1].explicit_settings, tier);
    explicit_settings["planner"] = "sqrt_segments";
    TechniqueSelector fit(recipe_of(explicit_settings), explicit_settings,
                          Machine::open(recipe_of(explicit_settings)));
    const Bytes least = fit.smallest(which).arena;
    for (const Bytes budget : {Bytes(int64_t{1} << 40), least}) {
      const auto result = fit.plan(budget);
      ASSERT_TRUE(std::holds_alternative<PlannedTraining>(result)) << tier << " " << budget.count;
      const PlannedTraining& training = std::get<PlannedTraining>(result);
      EXPECT_EQ(training.recipe.planner, "sqrt_segments");
      EXPECT_LE(training.plan().arena, budget);
    }
    EXPECT_TRUE(std::holds_alternative<Refusal>(fit.plan(least - Bytes(1))));
  }
}

TEST(Fit, ATypedTechniqueMayGoBeyondTheTierOfTheSearch) {
  Settings explicit_settings = small_nets()[0].explicit_settings;
  explicit_settings["precision"] = "bf16";
  TechniqueSelector fit(recipe_of(explicit_settings), explicit_settings,
                        Machine::open(recipe_of(explicit_settings)));
  const auto result = fit.plan(kLeastMemory);
  const PlannedTraining& training = std::get<PlannedTraining>(result);
  EXPECT_EQ(training.tier, NumericsTier::approximate);
  EXPECT_EQ(training.recipe.optimizer.state_bits, 32);
  explicit_settings["allow"] = "equivalent";
  EXPECT_THROW(selector_of(explicit_settings).plan(kLeastMemory), UserError);
}

TEST(Fit, WhatRefusalNamesTheLeastOfEveryTier) {
  const SmallNet& net = small_nets()[2];
  TechniqueSelector fit(recipe_of(net.explicit_settings), net.explicit_settings,
                        Machine::open(recipe_of(net.explicit_settings)));
  const auto result = fit.plan(Bytes(64));
  const Refusal& fault = std::get<Refusal>(result);
  ASSERT_EQ(fault.floors.size(), 3u);
  EXPECT_GT(fault.floors[0].least, fault.floors[1].least);
  EXPECT_GT(fault.floors[1].least, fault.floors[2].least);
  EXPECT_EQ(fault.least.min_bytes, fault.floors[1].least);
  EXPECT_NE(fault.floors[1].flags.find("--fold"), std::string::npos) << fault.floors[1].flags;
  ASSERT_FALSE(fault.unlock.empty());
  EXPECT_NE(fault.unlock[0].find("--allow approximate"), std::string::npos) << fault.unlock[0];
  EXPECT_FALSE(fault.least.why.empty());
}

// A selector that counts how often its searches look up, which is the same on every machine.
struct CountedSelector {
  CountedSelector(const Settings& settings, SearchLimits limits) {
    limits.watch = &watch;
    fit.emplace(modelled(settings), settings, Machine::open(modelled(settings)), limits);
  }
  int looks = 0;
  const std::function<void()> watch = [this] { ++looks; };
  std::optional<TechniqueSelector> fit;
};

TEST(Fit, AFloorThatTiersShareIsSearchedForOnce) {
  Settings settings = with_tier(small_nets()[0].explicit_settings, "equivalent");
  settings["microbatch"] = settings.at("batch");
  settings["fold"] = false;
  CountedSelector counted(settings, {});
  const Bytes least = counted.fit->smallest(NumericsTier::equivalent).arena;
  const int looks = counted.looks;
  EXPECT_GT(looks, 0);
  EXPECT_EQ(counted.fit->smallest(NumericsTier::exact).arena, least);
  EXPECT_EQ(counted.looks, looks);
}

TEST(Fit, ManyCombinationsShareTheWorkOfAFew) {
  const Settings settings = with_tier(small_nets()[0].explicit_settings, "approximate");
  const auto work_of = [&](size_t planners) {
    CountedSelector counted(settings, {.planners = planners});
    const auto& options = counted.fit->options(NumericsTier::approximate);
    const Bytes most = counted.fit->requested().without_recompute().arena;
    const auto recomputes = [](const auto& option) { return option->candidate().recomputes; };
    EXPECT_GT(std::ranges::count_if(options, recomputes), 12);
    counted.looks = 0;
    for (const auto& option : options) {
      if (recomputes(option)) option->fastest_within(Bytes(most.count / 2));
    }
    return counted.looks;
  };
  EXPECT_LT(work_of(0), work_of(1000));
}

// Batches of about as many tokens, whatever the length of their records.
Settings several_lengths(std::string_view tier) {
  return with_tier({{"model", "dynamicconv"},
                    {"width", 32},
                    {"heads", 2},
                    {"encoder", 1},
                    {"decoder", 1},
                    {"kernel", 7},
                    {"source-vocabulary", 300},
                    {"target-vocabulary", 200},
                    {"tokens", 300},
                    {"lengths", {10, 30, 50}},
                    {"optimizer", "adam"}},
                   tier);
}

// Records of other lengths may need a little more than the one that a step is planned for first.
TEST(Fit, TheLeastHasRoomForEveryLength) {
  if (kSanitized) GTEST_SKIP() << "takes too long";
  Recipe requested = recipe_of(several_lengths("exact"));
  requested.memory = kLeastMemory;
  TechniqueSelector fit(requested, settings_of(requested), Machine::open(requested));
  const auto least = fit.plan(kLeastMemory);
  ASSERT_TRUE(std::holds_alternative<PlannedTraining>(least));
  const Bytes arena = std::get<PlannedTraining>(least).plan().arena;
  EXPECT_EQ(fit.smallest(NumericsTier::exact).arena, arena);
  const auto below = fit.plan(arena - Bytes(1));
  ASSERT_TRUE(std::holds_alternative<Refusal>(below));
  EXPECT_EQ(std::get<Refusal>(below).least.min_bytes, arena);
}

// Dominated plans are compared by the memory of all lengths, and by times of the same one.
TEST(StepOption, KeepsEverythingOfEveryLength) {
  int others = 0;  // where another length than the first takes most
  for (const char* codec : {"none", "int2"}) {
    Settings explicit_settings = several_lengths("approximate");
    explicit_settings["codec"] = codec;
    explicit_settings["precision"] = "bf16";
    explicit_settings["planner"] = "optimal";
    Recipe recipe = recipe_of(explicit_settings);
    const auto machine = Machine::open(recipe);
    StepOption step({.recipe = recipe}, *machine);
    recipe.planner = "keep_all";
    const auto planned = plan_training(recipe);
    const PlannedTraining& all = std::get<PlannedTraining>(planned);
    EXPECT_EQ(step.without_recompute().arena, all.plan().arena) << codec;
    EXPECT_TRUE(step.without_recompute(all.plan().arena));
    EXPECT_FALSE(step.without_recompute(all.plan().arena - Bytes(1)));
    EXPECT_DOUBLE_EQ(step.without_recompute().seconds, priced_as_a_whole(all).predicted_seconds)
        << codec;
    others += all.full().shape == largest_shape(recipe) ? 0 : 1;
  }
  EXPECT_GT(others, 0);
}

TEST(Fit, OfSeveralLengthsMoreMemoryIsNotSlower) {
  if (kSanitized) GTEST_SKIP() << "takes too long";
  const Settings explicit_settings = several_lengths("approximate");
  const Recipe requested = modelled(explicit_settings);
  TechniqueSelector fit(requested, explicit_settings, Machine::open(requested));
  double seconds = kNever;
  Bytes arena;
  for (const int kilobytes : {342, 500, 600, 700, 800}) {
    const auto result = fit.plan(Bytes(kilobytes * 1000));
    ASSERT_TRUE(std::holds_alternative<PlannedTraining>(result)) << kilobytes;
    const PlannedTraining& training = std::get<PlannedTraining>(result);
    const double takes = priced_as_a_whole(training).predicted_seconds;
    EXPECT_LE(takes, seconds) << kilobytes;
    EXPECT_GE(training.plan().arena, arena) << kilobytes;
    if (training.recipe.planner == "keep_all") {
      EXPECT_EQ(fit.choose(Bytes(kilobytes * 1000))->arena, training.plan().arena) << kilobytes;
    }
    Bytes saved;
    for (const TechniqueGain& share : std::get<PlannedTraining>(result).report->gains)
      saved += share.saved;
    EXPECT_EQ(std::get<PlannedTraining>(result).report->plain_arena - saved, training.plan().arena);
    seconds = takes;
    arena = training.plan().arena;
    expect_the_same_typed_out(training);
  }
}

TEST(Candidates, RowsDivideTheBatchWhereTheyCan) {
  EXPECT_EQ(rows_to_try(100, 1), (std::vector<int64_t>{50, 25, 20, 10, 5, 4, 2, 1}));
  EXPECT_EQ(rows_to_try(100, 4), (std::vector<int64_t>{50, 25, 20, 10, 5, 4}));
  EXPECT_EQ(rows_to_try(64, 1), (std::vector<int64_t>{32, 16, 8, 4, 2, 1}));
  EXPECT_EQ(rows_to_try(7, 1), (std::vector<int64_t>{4, 2, 1}));
  EXPECT_TRUE(rows_to_try(1, 1).empty());
}

TEST(Candidates, RowsBetweenAreTheFewestForSoManyMicrobatches) {
  EXPECT_EQ(rows_between(64, 32, 16, 1), (std::vector<int64_t>{22}));
  EXPECT_EQ(rows_between(64, 16, 8, 1), (std::vector<int64_t>{13, 11, 10}));
  EXPECT_EQ(rows_between(64, 8, 4, 1), (std::vector<int64_t>{7, 6, 5}));
  EXPECT_EQ(rows_between(64, 4, 2, 1), (std::vector<int64_t>{3}));
  EXPECT_TRUE(rows_between(64, 64, 32, 1).empty());  // two microbatches are of 32 at least
  EXPECT_TRUE(rows_between(64, 2, 1, 1).empty());
  // The statistics of the last are of four rows at least.
  EXPECT_EQ(rows_between(64, 16, 8, 4), (std::vector<int64_t>{13, 11, 10}));
  EXPECT_EQ(rows_between(64, 8, 4, 4), (std::vector<int64_t>{6, 5}));
}

// Of a small step every microbatch less is time saved, and it need not divide the batch for that.
TEST(Fit, MicrobatchesNeedNotDivideTheBatch) {
  const Settings explicit_settings = {{"model", "mlp"}, {"batch", 64}};
  const Recipe requested = modelled(explicit_settings);
  const auto machine = Machine::open(requested);
  TechniqueSelector fit(requested, explicit_settings, Machine::open(requested));
  for (const int rows : {13, 6, 3}) {
    Recipe by_hand = requested;
    by_hand.microbatch = rows;
    const auto planned = plan_training(by_hand);
    const PlannedTraining& hand = std::get<PlannedTraining>(planned);
    const double seconds = priced_as_a_whole(hand).predicted_seconds;
    by_hand.planner = "optimal";
    EXPECT_NEAR(StepOption({.recipe = by_hand}, *machine).bounds().without_recompute.seconds,
                seconds, 1e-12);
    const auto result = fit.plan(hand.plan().arena);
    ASSERT_TRUE(std::holds_alternative<PlannedTraining>(result)) << rows;
    const PlannedTraining& fitted = std::get<PlannedTraining>(result);
    EXPECT_LE(priced_as_a_whole(fitted).predicted_seconds, seconds * (1 + 1e-9)) << rows;
    EXPECT_EQ(fitted.recipe.microbatch, rows);
    EXPECT_EQ(fitted.tier, NumericsTier::equivalent);
    expect_shares_add_up(fitted);
    expect_the_same_typed_out(fitted);
  }
}

// A smaller last microbatch counts as it will be planned, also with recomputation.
TEST(Fit, OfAnOddBatchMoreMemoryIsNotSlower) {
  if (kSanitized) GTEST_SKIP() << "takes too long";
  const Settings explicit_settings = {
      {"model", "unet"}, {"layers", 2}, {"hidden", 4}, {"norm", "group"}, {"batch", 7}};
  const Recipe requested = modelled(explicit_settings);
  TechniqueSelector fit(requested, explicit_settings, Machine::open(requested));
  double seconds = kNever;
  int with_rest = 0;
  for (const int kilobytes : {780, 800, 890}) {
    SCOPED_TRACE(kilobytes);
    const auto result = fit.plan(Bytes(kilobytes * 1000));
    ASSERT_TRUE(std::holds_alternative<PlannedTraining>(result));
    const PlannedTraining& fitted = std::get<PlannedTraining>(result);
    const double takes = priced_as_a_whole(fitted).predicted_seconds;
    EXPECT_LE(takes, seconds);
    seconds = takes;
    const bool again = fitted.recipe.planner == "optimal";
    with_rest += again && fitted.rest() != nullptr ? 1 : 0;
    expect_shares_add_up(fitted);
  }
  EXPECT_GT(with_rest, 0);
}

std::vector<Change> approximate_of(std::vector<Change> changes) {
  std::erase_if(changes,
                [](const Change& change) { return change.tier != NumericsTier::approximate; });
  return changes;
}

TEST(Candidates, HarmComesInTheStatedOrder) {
  Settings explicit_settings = with_tier(small_nets()[1].explicit_settings, "approximate");
  explicit_settings["batch"] = 12;  // some rows to take fewer of
  const Recipe requested = recipe_of(explicit_settings);
  const auto machine = Machine::open(requested);
  StepOption plain({.recipe = requested}, *machine);
  double milder = 0, worst_of_milder = 0;
  std::vector<Change> worst;
  const Choices choices = choices_for(requested, explicit_settings, NumericsTier::approximate,
                                      plain.step().model.graph, machine->backend());
  for (const char* technique : {"precision", "state", "codec", "microbatch", "sparsity"}) {
    for (const auto& changes : choices) {
      if (changes.front().technique != technique) continue;
      const std::vector<Change> offered = approximate_of(changes);
      const auto [least, most] = std::ranges::minmax(offered, {}, &Change::risk);
      EXPECT_GT(least.risk, milder) << technique;
      milder = least.risk;
      if (least.technique == "sparsity") {
        EXPECT_GT(least.risk, worst_of_milder);
      }
      worst_of_milder += most.risk;
      worst.push_back(most);
    }
  }
  EXPECT_EQ(worst.size(), 5u);
  const Candidate all = with_changes(requested, worst).value();
  EXPECT_EQ(all.tier, NumericsTier::approximate);
  EXPECT_GT(all.risk, worst_of_milder);  // nonzeros cannot move beside 8-bit state
}

bool is_sparse(const StepOption& step) { return step.candidate().recipe.sparsity.density > 0; }

// Sparse weights are the last resort: taken where all else is slower, and in as few bytes much slower.
TEST(Fit, SparseWeightsOnlyWhereAllElseIsSlower) {
  const Settings explicit_settings = with_tier(small_nets()[1].explicit_settings, "approximate");
  TechniqueSelector fit(recipe_of(explicit_settings), explicit_settings,
                        Machine::open(recipe_of(explicit_settings)));
  const Bytes least = fit.smallest(NumericsTier::approximate).arena;
  int sparse = 0;
  for (const Bytes budget :
       budgets_between(fit.requested().without_recompute().arena, least, kBudgets)) {
    const auto chosen = fit.choose(budget);
    ASSERT_TRUE(chosen);
    if (!is_sparse(fit.option(*chosen, NumericsTier::approximate))) continue;
    ++sparse;
    for (const auto& step : fit.options(NumericsTier::approximate)) {
      if (is_sparse(*step)) continue;
      if (const auto pick = step->fastest_within(budget)) {
        EXPECT_GE(pick->seconds * kNearTie, chosen->seconds) << budget.count;
      }
      if (const auto without_recompute = step->without_recompute(chosen->arena)) {
        EXPECT_GT(without_recompute->seconds, kNearTie * chosen->seconds) << budget.count;
      }
    }
  }
  EXPECT_GT(sparse, 0);
  EXPECT_LT(sparse, kBudgets);
}

TEST(Fit, SixteenBitsAndMicrobatchesComeBeforeSparseWeights) {
  const Settings explicit_settings = {
      {"model", "wrn-28-2"}, {"batch", 100}, {"allow", "approximate"}};
  const Recipe requested = modelled(explicit_settings);
  TechniqueSelector fit(requested, explicit_settings, Machine::open(requested));
  for (const int megabytes : {50, 20, 12}) {
    const auto chosen = fit.choose(Bytes(megabytes * 1'000'000));
    ASSERT_TRUE(chosen);
    const StepOption& option = fit.option(*chosen, NumericsTier::approximate);
    EXPECT_FALSE(is_sparse(option)) << megabytes;
    EXPECT_GT(option.candidate().recipe.microbatch, 0) << megabytes;
  }
}

}  // namespace
}  // namespace thimble
