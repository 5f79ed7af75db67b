// The rule of the choice, read off random options by brute force.
#include "select/pareto_selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "support/sanitized.h"

namespace thimble {
namespace {

// Plans as a list, fastest and largest first; the first may compute everything once.
class FakeOption final : public Option {
 public:
  FakeOption(NumericsTier tier, double risk, std::vector<PlanPoint> plans, bool keeps, bool loose)
      : tier_(tier), risk_(risk), plans_(std::move(plans)), keeps_(keeps), loose_(loose) {}

  const std::vector<PlanPoint>& plans() const { return plans_; }
  bool keeps() const { return keeps_; }  // whether its first plan computes everything once

  NumericsTier tier() const override { return tier_; }
  double risk() const override { return risk_; }
  Bytes least_arena() const override { return loose_ ? Bytes() : plans_.back().arena; }
  double least_seconds(Bytes budget) const override {
    if (loose_) return keeps_ ? plans_[0].seconds : 0;
    const PlanPoint* const plan = find(budget);
    return plan != nullptr ? plan->seconds : 1e300;
  }
  std::optional<PlanPoint> without_recompute(Bytes budget) override {
    return keeps_ && plans_[0].arena <= budget ? std::optional(plans_[0]) : std::nullopt;
  }
  std::optional<PlanPoint> fastest_within(Bytes budget) override {
    const PlanPoint* const plan = find(budget);
    return plan != nullptr ? std::optional(*plan) : std::nullopt;
  }
  PlanPoint smallest() override { return plans_.back(); }
  void raise_floor(Bytes least) override {
    while (plans_.size() > 1 && plans_.back().arena < least) plans_.pop_back();
  }

 private:
  const PlanPoint* find(Bytes budget) const {
    for (const PlanPoint& plan : plans_) {
      if (plan.arena <= budget) return &plan;
    }
    return nullptr;
  }

  const NumericsTier tier_;
  const double risk_;
  std::vector<PlanPoint> plans_;
  const bool keeps_, loose_;
};

using Options = std::vector<std::unique_ptr<FakeOption>>;

// Whether every plan of `a` dominates those of `b` that are no better; else those without recomputation may.
bool always_safer(const FakeOption& a, const FakeOption& b, Dominators dominators) {
  return dominators == Dominators::every_plan ? a.risk() < b.risk() : a.tier() < b.tier();
}

// Plans in the order that decides whether they stand: a plan is dominated only by those before it.
struct Plan {
  size_t option, number;
  PlanPoint point;
  bool stands = true;
};

// The rule as the header says it, plan by plan.
std::vector<Plan> standing(const Options& options, Dominators dominators) {
  std::vector<size_t> safest_first(options.size());
  std::iota(safest_first.begin(), safest_first.end(), size_t{0});
  std::ranges::stable_sort(safest_first, [&](size_t a, size_t b) {
    if (always_safer(*options[a], *options[b], dominators)) return true;
    if (always_safer(*options[b], *options[a], dominators)) return false;
    return options[a]->risk() < options[b]->risk();
  });
  std::vector<Plan> plans;
  for (const size_t option : safest_first) {
    const auto& points = options[option]->plans();
    for (size_t i = 0; i < points.size(); ++i) {
      Plan plan = {option, i, points[i]};
      for (const Plan& other : plans) {
        const FakeOption &ours = *options[option], &theirs = *options[other.option];
        const bool safer = always_safer(theirs, ours, dominators) ||
                           (dominators == Dominators::without_recompute &&
                            ours.tier() != NumericsTier::exact && theirs.tier() == ours.tier() &&
                            theirs.risk() < ours.risk() && other.number == 0 && theirs.keeps());
        if (other.stands && safer && other.point.arena <= plan.point.arena &&
            other.point.seconds <= kNearTie * plan.point.seconds) {
          plan.stands = false;
        }
      }
      plans.push_back(plan);
    }
  }
  std::erase_if(plans, [](const Plan& plan) { return !plan.stands; });
  return plans;
}

const Plan* best_within(const std::vector<Plan>& plans, Bytes budget) {
  const Plan* best = nullptr;
  for (const Plan& plan : plans) {
    if (plan.point.arena > budget) continue;
    const auto order = [](const Plan& p) { return std::pair(p.point.seconds, p.point.arena); };
    if (best == nullptr || order(plan) < order(*best)) best = &plan;
  }
  return best;
}

Options random_options(std::mt19937& random, bool loose) {
  const auto whole = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Options options;
  for (int count = whole(1, 6); count > 0; --count) {
    const auto tier = static_cast<NumericsTier>(whole(0, 2));
    const double risk = tier == NumericsTier::approximate ? whole(1, 4) : 0;
    std::vector<PlanPoint> plans;
    double seconds = whole(90, 130);
    int arena = whole(60, 120);
    for (int left = whole(1, 12); left > 0 && arena > 0; --left) {
      plans.push_back({seconds, Bytes(arena)});
      seconds += whole(1, 12) * 0.75;
      arena -= whole(1, 15);
    }
    options.push_back(
        std::make_unique<FakeOption>(tier, risk, std::move(plans), whole(0, 9) > 0, loose));
  }
  return options;
}

ParetoSelector selector_of(const Options& options, Dominators dominators) {
  std::vector<Option*> all;
  for (const auto& option : options) all.push_back(option.get());
  return {std::move(all), dominators};
}

void check(unsigned seed, Dominators dominators, bool loose) {
  std::mt19937 random(seed);
  const Options options = random_options(random, loose);
  const std::vector<Plan> plans = standing(options, dominators);
  ParetoSelector selector = selector_of(options, dominators);
  double seconds = 1e300, fastest = 0;
  Bytes arena, least(INT64_MAX);
  for (const auto& option : options) least = std::min(least, option->plans().back().arena);
  EXPECT_EQ(selector.smallest().arena, least);
  for (int64_t budget = 1; budget <= 125; ++budget) {
    const auto pick = selector.within(Bytes(budget));
    const Plan* const expected = best_within(plans, Bytes(budget));
    ASSERT_EQ(pick.has_value(), expected != nullptr) << budget;
    ASSERT_EQ(pick.has_value(), Bytes(budget) >= least) << budget;
    EXPECT_EQ(selector.has_room(Bytes(budget)), pick.has_value());
    if (!pick) continue;
    ASSERT_EQ(pick->seconds, expected->point.seconds) << budget;
    ASSERT_EQ(pick->arena, expected->point.arena) << budget;
    EXPECT_LE(pick->arena, Bytes(budget));
    EXPECT_LE(pick->seconds, seconds);  // more memory is not slower, and takes no less
    EXPECT_GE(pick->arena, arena);
    fastest = 1e300;
    for (const auto& option : options) {
      if (const auto plan = option->fastest_within(Bytes(budget))) {
        fastest = std::min(fastest, plan->seconds);
      }
    }
    EXPECT_LE(pick->seconds, kNearTie * fastest * (1 + 1e-9));
    seconds = pick->seconds;
    arena = pick->arena;
  }
}

TEST(ParetoSelector, ChoosesAsTheRuleSays) {
  const unsigned sets = kSanitized ? 200 : 10'000;
  for (unsigned seed = 0; seed < sets && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const auto dominators = seed % 2 == 0 ? Dominators::without_recompute : Dominators::every_plan;
    check(seed, dominators, seed % 4 < 2);
  }
}

TEST(ParetoSelector, WithoutAnOptionTheOthersAreChosenFrom) {
  int compared = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const Options options = random_options(random, false);
    if (options.size() < 2) continue;
    ParetoSelector selector = selector_of(options, Dominators::without_recompute);
    const auto pick = selector.within(Bytes(100));
    if (!pick) continue;
    selector.drop(pick->option);
    std::vector<Option*> others;
    for (size_t i = 0; i < options.size(); ++i) {
      if (i != pick->option) others.push_back(options[i].get());
    }
    EXPECT_EQ(selector.left(), others.size());
    ParetoSelector fresh(std::move(others), Dominators::without_recompute);
    const auto of_fresh = fresh.within(Bytes(100)), of_rest = selector.within(Bytes(100));
    ASSERT_EQ(of_fresh.has_value(), of_rest.has_value());
    if (!of_rest) continue;
    EXPECT_EQ(of_fresh->seconds, of_rest->seconds);
    EXPECT_EQ(of_fresh->arena, of_rest->arena);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// Risks are sums, and the same ones added in another order are no less: the fastest is taken.
TEST(ParetoSelector, ARoundingOfRisksIsNoDifference) {
  const double one = 0.1 + 0.2 + 0.3, other = 0.3 + 0.2 + 0.1;
  ASSERT_NE(one, other);
  for (const auto& [fast, slow] : {std::pair(one, other), {other, one}}) {
    Options options;
    const auto add = [&](double risk, double seconds, int arena) {
      options.push_back(std::make_unique<FakeOption>(
          NumericsTier::approximate, risk, std::vector<PlanPoint>{{seconds, Bytes(arena)}}, true,
          false));
    };
    add(fast, 100, 50);
    add(slow, 104, 40);
    ParetoSelector selector = selector_of(options, Dominators::without_recompute);
    EXPECT_EQ(selector.within(Bytes(60))->option, 0u);
    EXPECT_EQ(selector.within(Bytes(45))->option, 1u);
  }
}

}  // namespace
}  // namespace thimble
