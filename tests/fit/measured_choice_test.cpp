// Choices by measured times, with a stand-in for the device: what a kernel takes there is known.
#include "fit/measured_choice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "execute/costs.h"
#include "file_support.h"
#include "small_nets.h"

namespace thimble {
namespace {

// 16 bits are not what the model takes them for: the device has no arithmetic for them.
double true_seconds(const KernelUse& use) {
  const bool sixteen = use.key.find("f16[") != std::string::npos;  // bf16[, too
  return use.modelled * (sixteen ? 20 : 2);
}

CostTable true_times(const std::vector<KernelUse>& kernels) {
  CostTable table;
  for (const KernelUse& use : kernels) {
    table[use.key] = {true_seconds(use), use.modelled, "2026-11-16"};
  }
  return table;
}

// A net that is chosen for where all that its own step runs was measured.
class ChoiceByTimes : public testing::Test {
 protected:
  ChoiceByTimes() {
    typed_.device = "cpu";
    typed_.on.threads = 1;
    typed_.costs = file_;
    const auto backend = make_backend("cpu", typed_.on);
    Recipe modelled = typed_;
    modelled.costs = "modelled";
    const FitStep plain({.recipe = modelled}, *backend, 1);
    write_costs(file_, {{backend->machine(), true_times(kernels_of(plain.graph(), *backend))}});
    budget_ = Bytes(plain.once().arena.count / 2);
  }

  FirstTimes times(FirstTimes::Timer timer) const { return {typed_, file_, 1e6, std::move(timer)}; }
  static bool has_sixteen_bits(const FitSearch::Pick& pick) {
    return pick.step->candidate().recipe.model.storage != DType::f32;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "costs.json";
  const Settings said_ = {
      {"model", "mlp"}, {"layers", 2}, {"hidden", 32}, {"batch", 256}, {"allow", "approximate"}};
  Recipe typed_ = recipe_of(said_);
  Bytes budget_;
};

FirstTimes::Timer knows_all() {
  return
      [](const std::vector<KernelUse>& kernels, Backend&, double) { return true_times(kernels); };
}

TEST_F(ChoiceByTimes, WhatWasNotMeasuredDoesNotWinForIt) {
  Fit fit(typed_, said_);
  ASSERT_TRUE(has_sixteen_bits(*fit.choose(budget_)));  // by their models
  FirstTimes first = times(knows_all());
  measure_choice(fit, budget_, first);
  const auto chosen = fit.choose(budget_);
  EXPECT_FALSE(has_sixteen_bits(*chosen));
  EXPECT_GE(measured_part(*chosen->step, fit.backend(), first).part, kMeasured);
  EXPECT_GT(first.kernels(), 0);
  // Who knows every time of every step chooses nothing much faster.
  const double seconds = chosen->seconds;
  for (const auto& step : fit.search(Tier::approximate).steps()) {
    first.measure(measured_part(*step, fit.backend(), first).unmeasured, fit.backend(), 1);
  }
  fit.forget_times();
  EXPECT_LE(seconds, fit.choose(budget_)->seconds * kNearTie * kNearTie);
}

TEST_F(ChoiceByTimes, IsTheSameTypedOut) {
  Fit fit(typed_, said_);
  FirstTimes first = times(knows_all());
  measure_choice(fit, budget_, first);
  const auto result = fit.within(budget_);
  const auto& fitted = std::get<Fitted>(result);
  Recipe again;
  configure(again, settings_of(fitted.training.recipe));
  EXPECT_FALSE(again.fit);
  const auto planned = plan_training(again);
  EXPECT_EQ(std::get<PlannedTraining>(planned).plan(), fitted.training.plan());
}

TEST_F(ChoiceByTimes, EndsWhereNothingCanBeMeasured) {
  Fit fit(typed_, said_);
  int calls = 0;
  FirstTimes first = times([&](const auto&, Backend&, double) {
    ++calls;
    return CostTable();
  });
  measure_choice(fit, budget_, first);
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, 2);  // for what looks best, and for the choice
  EXPECT_EQ(first.kernels(), 0);
  EXPECT_TRUE(fit.choose(budget_));
}

TEST_F(ChoiceByTimes, EndsWhenTheTimeIsSpent) {
  Fit fit(typed_, said_);
  int calls = 0;
  FirstTimes first(typed_, file_, 0.3, [&](const auto& kernels, Backend&, double seconds) {
    ++calls;
    EXPECT_LE(seconds, 0.3);
    // At once, where searching alone takes as long as it may.
    std::this_thread::sleep_for(std::chrono::milliseconds(kSanitized ? 300 : 120));
    return true_times({kernels.front()});
  });
  measure_choice(fit, budget_, first);
  EXPECT_LE(calls, 3);
  EXPECT_FALSE(first.may_measure());
  EXPECT_EQ(first.kernels(), calls);
}

// What matters most is measured first, and what is known not again.
TEST_F(ChoiceByTimes, TheDearestKernelsComeFirst) {
  Fit fit(typed_, said_);
  FirstTimes first = times(knows_all());
  const auto chosen = fit.choose(budget_);
  const MeasuredPart part = measured_part(*chosen->step, fit.backend(), first);
  EXPECT_LT(part.part, kMeasured);
  ASSERT_GT(part.unmeasured.size(), 2u);
  const CostTable known = first.known(fit.backend());
  for (const KernelUse& use : part.unmeasured) EXPECT_FALSE(known.contains(use.key)) << use.key;
  EXPECT_EQ(measured_part(fit.plain(), fit.backend(), first).part, 1);
  // The first of them is more of the step than the last.
  auto more = [&, before = part.part](const KernelUse& use) mutable {
    first.measure({use}, fit.backend(), 1);
    const double now = measured_part(*chosen->step, fit.backend(), first).part;
    return now - std::exchange(before, now);
  };
  const double of_last = more(part.unmeasured.back());
  EXPECT_GT(more(part.unmeasured.front()), of_last);
}

}  // namespace
}  // namespace thimble
