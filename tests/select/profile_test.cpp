// Choices by measured times, with a stand-in for the device: what a kernel takes there is known.
#include "select/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "execute/costs.h"
#include "file_support.h"
#include "pipeline/profiling_limits.h"
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
    requested_.device = "cpu";
    requested_.on.threads = 1;
    requested_.costs = file_;
    Recipe modelled = requested_;
    modelled.costs = "modelled";
    const auto machine = Machine::open(modelled);
    Backend& backend = machine->backend();
    StepOption plain({.recipe = modelled}, *machine);
    write_costs(file_,
                {{backend.machine(), true_times(kernels_of(plain.step().model.graph, backend))}});
    budget_ = Bytes(plain.without_recompute().arena.count / 2);
  }

  std::shared_ptr<Machine> machine(Profiling::Timer timer, double seconds = 1e6) const {
    return Machine::open(requested_, {file_, seconds, std::move(timer)});
  }
  static bool has_sixteen_bits(TechniqueSelector& fit, const ParetoSelector::Pick& pick) {
    return fit.option(pick, NumericsTier::approximate).candidate().recipe.model.storage !=
           DType::f32;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "costs.json";
  const Settings explicit_settings_ = {
      {"model", "mlp"}, {"layers", 2}, {"hidden", 32}, {"batch", 256}, {"allow", "approximate"}};
  Recipe requested_ = recipe_of(explicit_settings_);
  Bytes budget_;
};

Profiling::Timer knows_all() {
  return [](const auto& kernels, Backend&, double, Bytes) { return true_times(kernels); };
}

TEST_F(ChoiceByTimes, WhatWasNotMeasuredDoesNotWinForIt) {
  const auto first = machine(knows_all());
  TechniqueSelector fit(requested_, explicit_settings_, first);
  ASSERT_TRUE(has_sixteen_bits(fit, *fit.choose(budget_)));  // by their models
  refine_with_profile(fit, budget_, *first);
  const auto chosen = fit.choose(budget_);
  EXPECT_FALSE(has_sixteen_bits(fit, *chosen));
  EXPECT_GE(measured_part(fit.option(*chosen, NumericsTier::approximate).step()).part,
            kProfilingLimits.measured);
  EXPECT_GT(first->profiled_kernels(), 0);
  // Who knows every time of every step chooses nothing much faster.
  const double seconds = chosen->seconds;
  std::vector<KernelUse> unmeasured;
  for (const auto& option : fit.options(NumericsTier::approximate)) {
    for (KernelUse& use : measured_part(option->step()).unmeasured) unmeasured.push_back(use);
  }
  first->profile(std::move(unmeasured), 1);
  fit.price_again();
  EXPECT_LE(seconds, fit.choose(budget_)->seconds * kNearTie * kNearTie);
}

TEST_F(ChoiceByTimes, IsTheSameTypedOut) {
  const auto first = machine(knows_all());
  TechniqueSelector fit(requested_, explicit_settings_, first);
  refine_with_profile(fit, budget_, *first);
  const auto result = fit.plan(budget_);
  const auto& fitted = std::get<PlannedTraining>(result);
  Recipe again;
  configure(again, settings_of(fitted.recipe));
  EXPECT_FALSE(again.fit);
  const auto planned = plan_training(again);
  EXPECT_EQ(std::get<PlannedTraining>(planned).plan(), fitted.plan());
}

TEST_F(ChoiceByTimes, EndsWhereNothingCanBeMeasured) {
  int calls = 0;
  const auto first = machine([&](const auto&, Backend&, double, Bytes) {
    ++calls;
    return CostTable();
  });
  TechniqueSelector fit(requested_, explicit_settings_, first);
  refine_with_profile(fit, budget_, *first);
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, 2);  // for what looks best, and for the choice
  EXPECT_EQ(first->profiled_kernels(), 0);
  EXPECT_TRUE(fit.choose(budget_));
}

TEST_F(ChoiceByTimes, EndsWhenTheTimeIsSpent) {
  int calls = 0;
  const auto time_one = [&](const auto& kernels, Backend&, double seconds, Bytes) {
    ++calls;
    EXPECT_LE(seconds, 0.3);
    // At once, where searching alone takes as long as it may.
    std::this_thread::sleep_for(std::chrono::milliseconds(kSanitized ? 300 : 120));
    return true_times({kernels.front()});
  };
  const auto first = machine(time_one, 0.3);
  TechniqueSelector fit(requested_, explicit_settings_, first);
  refine_with_profile(fit, budget_, *first);
  EXPECT_LE(calls, 3);
  EXPECT_FALSE(first->may_profile());
  EXPECT_EQ(first->profiled_kernels(), calls);
}

// The kernels that matter most are profiled first, and known ones not again.
TEST_F(ChoiceByTimes, TheDearestKernelsComeFirst) {
  const auto first = machine(knows_all());
  TechniqueSelector fit(requested_, explicit_settings_, first);
  const auto chosen = fit.choose(budget_);
  const Candidate candidate = fit.option(*chosen, NumericsTier::approximate).candidate();
  const auto part_now = [&] {
    return measured_part(build_step(candidate.recipe, largest_shape(candidate.recipe), *first));
  };
  const MeasuredPart part = part_now();
  EXPECT_LT(part.part, kProfilingLimits.measured);
  ASSERT_GT(part.unmeasured.size(), 2u);
  for (const KernelUse& use : part.unmeasured) {
    EXPECT_FALSE(first->times().contains(use.key)) << use.key;
  }
  EXPECT_EQ(measured_part(fit.requested().step()).part, 1);
  // The first of them is more of the step than the last.
  auto more = [&, before = part.part](const KernelUse& use) mutable {
    first->profile({use}, 1);
    const double now = part_now().part;
    return now - std::exchange(before, now);
  };
  const double of_last = more(part.unmeasured.back());
  EXPECT_GT(more(part.unmeasured.front()), of_last);
}

// Times are read once and written where they grow; those that another process wrote meanwhile stay.
TEST_F(ChoiceByTimes, TheFileKeepsWhatOthersWrote) {
  const auto first = machine(knows_all());
  TechniqueSelector fit(requested_, explicit_settings_, first);
  const MeasuredPart part =
      measured_part(fit.option(*fit.choose(budget_), NumericsTier::approximate).step());
  CostFile file = read_costs(file_);
  file["Another(R) CPU"]["relu() by own"] = {1e-3, 1e-3, "2026-11-16"};
  std::filesystem::last_write_time(file_, std::filesystem::file_time_type::min());
  first->times();
  write_costs(file_, file);
  EXPECT_TRUE(first->profile({part.unmeasured.front()}, 1));
  EXPECT_EQ(first->generation(), 1);
  const CostFile after = read_costs(file_);
  EXPECT_TRUE(after.contains("Another(R) CPU"));
  const std::string machine = first->backend().machine();
  EXPECT_EQ(after.at(machine), first->times());
  EXPECT_EQ(after.at(machine).size(), file.at(machine).size() + 1);
}

// Workspaces and times of a step are those of kernels as they were then.
TEST_F(ChoiceByTimes, AStepIsNotPlannedByTimesOfBefore) {
  const auto first = machine(knows_all());
  Step step = build_step(requested_, largest_shape(requested_), *first);
  Recipe other = requested_;
  other.model.storage = DType::bf16;
  const Step sixteen = build_step(other, largest_shape(other), *first);
  EXPECT_TRUE(first->profile(measured_part(sixteen).unmeasured, 1));
  EXPECT_THROW(step.request(), InternalError);
  step.price();
  EXPECT_EQ(step.request().microbatches, 1);
}

}  // namespace
}  // namespace thimble
