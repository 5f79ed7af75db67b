#include "plan/bytes/least_bytes.h"

#include "plan/policy.h"
#include "plan/search/floor_search.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

Graph graph_of(const ModelOptions& options) {
  return make_training_graph(options, parse_optimizer("nesterov")).model.graph;
}

// With any recomputation, by any policy.
TEST(LeastBytes, NoScheduleIsBelow) {
  for (uint32_t seed = 1; seed <= (kSanitized ? 20u : 300u); ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_step(seed).graph;
    const Costs costs = flat_costs(graph, Bytes(64 * (seed % 3)));
    const Bytes least = least_bytes(graph, costs).all;
    const PlanRequest request = {.graph = graph, .costs = costs};
    for (const Policy* policy : all_policies()) {
      PlanRequest asked = request;
      asked.number = policy->number.usual;
      asked.budget = kLeastMemory;
      const ScheduleCost cost = cost_of(request, policy->schedule(asked));
      ASSERT_LE(least, cost.live_peak) << policy->name;
    }
    std::mt19937 random(seed);
    for (int i = 0; i < 20; ++i) {
      const Schedule schedule = with_recomputation(graph, random, 0.1 * (i % 8));
      ASSERT_LE(least, cost_of(request, schedule).live_peak) << i;
    }
  }
}

// Real steps are held to within a small factor of what is found: that is what refuses a budget at once.
TEST(LeastBytes, IsNearTheFloorOfRealSteps) {
  for (const auto& [options, most] : std::vector<std::pair<ModelOptions, double>>{
           {{.name = "mlp:layers=3,hidden=64", .batch = 16}, 1.1},
           {{.name = "wrn-10-1", .batch = 4}, 1.5},
           {{.name = "lstm:layers=2,hidden=32,length=12", .batch = 8}, 1.6},
           {{.name = "unet", .batch = 2}, 1.6}}) {
    SCOPED_TRACE(options.name);
    const Graph graph = graph_of(options);
    const Costs costs = gather_costs(graph, *make_backend("null", 1));
    const LeastBytes least = least_bytes(graph, costs);
    EXPECT_GE(least.all, least.largest_call);
    const Bytes floor = smallest_plans({.graph = graph, .costs = costs}).back().arena;
    EXPECT_LE(least.all, floor);
    EXPECT_LE(static_cast<double>(floor.count), most * static_cast<double>(least.all.count));
  }
}

// Kernels may take whatever they take: the smallest plan is the same.
TEST(Floor, DoesNotDependOnTimes) {
  for (const ModelOptions& options : {ModelOptions{.name = "wrn-10-1", .batch = 4},
                                      {.name = "lstm:layers=2,hidden=32,length=8", .batch = 8}}) {
    SCOPED_TRACE(options.name);
    const Graph graph = graph_of(options);
    Costs costs = gather_costs(graph, *make_backend("null", 1));
    const auto floor = [&] {
      return smallest_plans({.graph = graph, .costs = costs}).back().arena;
    };
    const auto planned = [&] {
      const PlanResult plan = make_plan({.graph = graph,
                                         .costs = costs,
                                         .budget = kLeastMemory,
                                         .policy = std::string(budget_policy())});
      return std::get<Plan>(plan).arena;
    };
    const Bytes least = floor();
    std::mt19937 random(3);
    std::uniform_real_distribution<> any(1e-7, 1e-3);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(floor(), least);
      EXPECT_EQ(planned(), least);
      for (NodeCost& cost : costs.nodes) cost.seconds = any(random);
    }
  }
}

// Combinations of techniques share the work of a few (scale_searches), and tiers share their floors.
TEST(Floor, DoesNotDependOnTheWorkForFastPlans) {
  for (const ModelOptions& options :
       {ModelOptions{.name = "unet", .batch = 4},
        ModelOptions{.name = "mlp:layers=12,hidden=64", .batch = 16}}) {
    SCOPED_TRACE(options.name);
    const Graph graph = graph_of(options);
    const Costs costs = gather_costs(graph, *make_backend("null", 1));
    const PlanRequest request = {.graph = graph, .costs = costs};
    SearchLimits little;
    scale_searches(little, 0);
    EXPECT_EQ(smallest_plans(request, little).back().arena, smallest_plans(request).back().arena);
  }
}

// Plans of the floor search are plans, each smaller than the one before.
TEST(Floor, PlansGetSmaller) {
  const Graph graph = graph_of({.name = "unet", .batch = 4});
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  const PlanRequest request = {.graph = graph, .costs = costs};
  Bytes last(INT64_MAX);
  for (const SmallPlan& small : smallest_plans(request)) {
    EXPECT_LT(small.arena, last);
    last = small.arena;
    const Plan plan = lay_out(request, small.schedule);
    EXPECT_EQ(plan.arena, small.arena);
    EXPECT_EQ(find_fault(graph, costs, plan), std::nullopt);
  }
}

}  // namespace
}  // namespace thimble
