// Rectangles of a plan, against the planner's own sums.
#include "plan/bytes/allocation_timeline.h"

#include <gtest/gtest.h>

#include "select/choose.h"

namespace thimble {
namespace {

PlannedTraining planned(const std::string& model, const std::string& planner, int64_t microbatch,
                        const char* optimizer = "nesterov") {
  Recipe recipe;
  recipe.model = {.name = model, .batch = 8};
  recipe.microbatch = microbatch;
  recipe.device = "null";
  recipe.planner = planner;
  recipe.optimizer = parse_optimizer(optimizer);
  return std::get<PlannedTraining>(plan_training(recipe));
}

void expect_the_plans_bytes(const PlannedTraining& step) {
  const Plan& plan = step.plan();
  const std::vector<Allocation> allocations = allocations_of(step.graph(), plan);
  std::vector<int64_t> live(plan.calls.size() + 1, 0);
  std::array<Bytes, kRoles> at_peak{};
  int64_t highest = 0;
  for (const Allocation& allocation : allocations) {
    ASSERT_LE(allocation.first, allocation.last);
    ASSERT_FALSE(allocation.occupants.empty());
    live[static_cast<size_t>(allocation.first)] += allocation.size.count;
    live[static_cast<size_t>(allocation.last) + 1] -= allocation.size.count;
    highest = std::max(highest, (allocation.at + allocation.size).count);
    if (allocation.first <= plan.peak_call && plan.peak_call <= allocation.last) {
      at_peak[static_cast<size_t>(allocation.role)] += allocation.size;
    }
  }
  int64_t now = 0, most = 0;
  for (const int64_t change : live) most = std::max(most, now += change);
  EXPECT_EQ(most, plan.peak_live.count);
  EXPECT_EQ(at_peak, plan.peak_by_role);
  EXPECT_EQ(highest, plan.arena.count);
}

TEST(Stays, AddUpToThePlansPeakRoleByRole) {
  for (const char* planner : {"keep_all", "drop_cheap", "sqrt_segments", "mirror"}) {
    for (const char* model : {"mlp", "wrn-10-1", "unet", "lstm:length=6"}) {
      SCOPED_TRACE(fmt::format("{} by {}", model, planner));
      expect_the_plans_bytes(planned(model, planner, 0));
      expect_the_plans_bytes(planned(model, planner, 2, "adam"));
    }
  }
}

// No two allocations share a byte at a call.
TEST(Stays, DoNotOverlap) {
  const PlannedTraining step = planned("wrn-10-1", "sqrt_segments", 0);
  const std::vector<Allocation> allocations = allocations_of(step.graph(), step.plan());
  for (size_t i = 0; i < allocations.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const bool times = allocations[i].first <= allocations[k].last &&
                         allocations[k].first <= allocations[i].last;
      const bool bytes = allocations[i].at < allocations[k].at + allocations[k].size &&
                         allocations[k].at < allocations[i].at + allocations[i].size;
      ASSERT_FALSE(times && bytes) << i << " and " << k;
    }
  }
}

TEST(Stays, NameWhoIsInThemAtACall) {
  const PlannedTraining step = planned("wrn-10-1", "keep_all", 0);
  for (const Allocation& allocation : allocations_of(step.graph(), step.plan())) {
    for (size_t t = 0; t < allocation.occupants.size(); ++t) {
      const Occupant& occupant = allocation.occupants[t];
      if (t + 1 < allocation.occupants.size() && allocation.occupants[t + 1].made == occupant.made)
        continue;
      EXPECT_EQ(allocation.at_call(occupant.made).value, occupant.value);
    }
  }
}

}  // namespace
}  // namespace thimble
