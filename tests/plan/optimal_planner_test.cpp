#include "plan/search/optimal_planner.h"

#include <cmath>
#include <optional>

#include "execute/costs.h"
#include "plan/policy.h"
#include "plan/search/eviction_search.h"
#include "plan/search/reduce_peak.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

// A model on the `null` backend: sizes and modelled times, nothing runs.
struct Problem {
  explicit Problem(const ModelOptions& options)
      : graph(make_training_graph(options, parse_optimizer("nesterov")).model.graph),
        costs(gather_costs(graph, *make_backend("null", 1))) {}

  PlanRequest request() const { return {.graph = graph, .costs = costs, .policy = "optimal"}; }
  Bytes arena_of(std::string_view policy) const {
    PlanRequest asked = request();
    asked.policy = policy;
    return std::get<Plan>(make_plan(asked)).arena;
  }

  Graph graph;
  Costs costs;
};

std::vector<ModelOptions> nets() {
  if (kSanitized) {
    return {{.name = "mlp:layers=6,hidden=128", .batch = 64}, {.name = "unet", .batch = 8}};
  }
  return {{.name = "wrn-28-2", .batch = 100},
          {.name = "resnet-50", .batch = 8},
          {.name = "mlp:layers=6,hidden=128", .batch = 64},
          {.name = "lstm:layers=3,hidden=64,length=40", .batch = 8},
          {.name = "unet", .batch = 8}};
}

// The promise of budgets: they are never exceeded. A smaller one never gives a larger arena or a
// faster plan. Below the least, and only there, it is refused.
TEST(OptimalPlanner, BudgetsAreObeyedAndMonotone) {
  for (const ModelOptions& options : nets()) {
    SCOPED_TRACE(options.name);
    const Problem problem(options);
    const PlanRequest request = problem.request();
    OptimalPlanner planner(request);
    const Bytes most = problem.arena_of("keep_all");
    const SchedulePool::Pick least = planner.choose(Bytes(1));
    ASSERT_LT(least.arena, most);
    EXPECT_EQ(planner.choose(least.arena).arena, least.arena);
    EXPECT_EQ(planner.choose(least.arena - Bytes(1)).arena, least.arena);

    std::mt19937 random(7);
    std::uniform_int_distribution<int64_t> any(least.arena.count, most.count);
    std::vector<Bytes> budgets;
    for (int i = 0; i < (kSanitized ? 40 : 200); ++i) budgets.emplace_back(any(random));
    std::sort(budgets.begin(), budgets.end());
    Bytes arena = least.arena;
    double seconds = planner.choose(least.arena).seconds;
    for (const Bytes budget : budgets) {
      const SchedulePool::Pick pick = planner.choose(budget);
      ASSERT_LE(pick.arena, budget);
      ASSERT_GE(pick.arena, arena) << "at " << budget.count;
      ASSERT_LE(pick.seconds, seconds) << "at " << budget.count;
      if (pick.arena == arena) continue;
      arena = pick.arena;
      seconds = pick.seconds;
      if (budget.count % 8 != 0) continue;  // some, for the time it takes
      const Plan plan = lay_out(request, *pick.schedule);
      ASSERT_EQ(plan.arena, arena);
      ASSERT_DOUBLE_EQ(plan.predicted_seconds, seconds);
      ASSERT_EQ(find_fault(problem.graph, problem.costs, plan), std::nullopt);
    }
  }
}

// The same for times of any machine, and for nets of any shape.
TEST(OptimalPlanner, IsMonotoneWhateverKernelsTake) {
  for (uint32_t seed = 1; seed <= (kSanitized ? 4u : 30u); ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_step(seed).graph;
    Costs costs = flat_costs(graph);
    std::mt19937 random(seed);
    std::uniform_real_distribution<> any_time(1e-6, 1e-3);
    for (NodeCost& cost : costs.nodes) cost.seconds = any_time(random);
    const PlanRequest request = {.graph = graph, .costs = costs, .policy = "optimal"};
    OptimalPlanner planner(request);
    const Bytes most = planner.choose({}).arena, least = planner.choose(kLeastMemory).arena;
    std::uniform_int_distribution<int64_t> any(least.count, most.count);
    std::vector<Bytes> budgets = {least, most};
    for (int i = 0; i < 200; ++i) budgets.emplace_back(any(random));
    std::sort(budgets.begin(), budgets.end());
    SchedulePool::Pick last = planner.choose(least);
    for (const Bytes budget : budgets) {
      const SchedulePool::Pick pick = planner.choose(budget);
      ASSERT_LE(pick.arena, budget);
      ASSERT_GE(pick.arena, least);
      ASSERT_GE(pick.arena, last.arena) << "at " << budget.count;
      ASSERT_LE(pick.seconds, last.seconds) << "at " << budget.count;
      ASSERT_LE(predicted_seconds(request, *pick.schedule), pick.seconds);
      last = pick;
    }
  }
}

// Each takes less than the one before, and is a whole plan.
TEST(Squeeze, TakesLessAndLess) {
  const Problem problem({.name = "unet", .batch = 8});
  PlanRequest request = problem.request();
  const ForwardPass pass(problem.graph);
  request.policy = "sqrt_segments";
  const Schedule start = schedule_of(std::get<Plan>(make_plan(request)));
  int tries = 400;
  const std::vector<ReducedPeak> found = reduced_peaks(pass, request, start, tries);
  ASSERT_GE(found.size(), 4u);
  EXPECT_LT(tries, 400);
  Bytes peak = cost_of(request, start).live_peak;
  for (const ReducedPeak& reduced_peaks : found) {
    EXPECT_LT(reduced_peaks.cost.live_peak, peak);
    peak = reduced_peaks.cost.live_peak;
    const ScheduleCost cost = cost_of(request, reduced_peaks.schedule);
    EXPECT_EQ(cost.live_peak, peak);
    EXPECT_DOUBLE_EQ(cost.seconds, reduced_peaks.cost.seconds);
    const Plan plan = lay_out(request, reduced_peaks.schedule);
    EXPECT_EQ(find_fault(problem.graph, problem.costs, plan), std::nullopt);
  }
}

TEST(Squeeze, EndsWithItsTries) {
  const Problem problem({.name = "wrn-10-1", .batch = 4});
  const PlanRequest request = problem.request();
  const ForwardPass pass(problem.graph);
  const Schedule start =
      schedule_keeping(pass, std::vector<bool>(problem.graph.values.size(), true));
  int tries = 1;
  EXPECT_TRUE(reduced_peaks(pass, request, start, tries).empty());
  EXPECT_EQ(tries, 0);
}

// The answer does not depend on earlier questions.
TEST(OptimalPlanner, AnswersAreIndependentOfEachOther) {
  for (const char* name : {"wrn-16-2", "unet"}) {
    SCOPED_TRACE(name);
    const Problem problem({.name = name, .batch = 10});
    const PlanRequest request = problem.request();
    const Bytes most = problem.arena_of("keep_all");
    OptimalPlanner asked_often(request);
    const Bytes least = OptimalPlanner(request).choose(Bytes(1)).arena;
    std::vector<Bytes> budgets = {least + Bytes(64), least - Bytes(1)};
    for (const int64_t percent : {30, 80, 45, 99, 60, 1, 20}) {
      budgets.insert(budgets.end() - 2, Bytes(most.count * percent / 100));
    }
    for (const Bytes budget : budgets) {
      OptimalPlanner fresh(request);
      EXPECT_EQ(*asked_often.choose(budget).schedule, *fresh.choose(budget).schedule)
          << budget.count;
    }
  }
}

// Steps and times at random: a dear value may be small, and a cheap one large. So a schedule from between two
// others, or one with a reduced peak, may well be the faster one in less memory.
TEST(OptimalPlanner, OfRandomTimesMoreMemoryIsNeverSlower) {
  for (uint32_t seed = 1; seed <= (kSanitized ? 4 : 16); ++seed) {
    const bool is_net = seed % 4 == 0;
    SCOPED_TRACE(fmt::format("{} {}", is_net ? "a net" : "a random step", seed));
    const Graph graph =
        is_net ? make_training_graph({.name = "wrn-10-1", .batch = 2, .image = {8, 8, 1}},
                                     parse_optimizer("sgd"))
                     .model.graph
               : random_step(seed).graph;
    std::mt19937 random(seed);
    Costs costs = flat_costs(graph);
    for (NodeCost& cost : costs.nodes) {
      cost.seconds =
          std::ldexp(1 + static_cast<double>(random() % 8), -static_cast<int>(random() % 12));
    }
    const PlanRequest request = {.graph = graph, .costs = costs, .policy = "optimal"};
    OptimalPlanner asked_often(request);
    const Bytes least = asked_often.choose(Bytes(1)).arena;
    PlanRequest all = request;
    all.policy = "keep_all";
    const Bytes most = std::get<Plan>(make_plan(all)).arena;
    double seconds = 0;
    Bytes arena = most;
    constexpr int kBudgets = 24;
    for (int i = 0; i <= kBudgets; ++i) {
      const Bytes budget = most - Bytes((most.count - least.count) * i / kBudgets);
      OptimalPlanner fresh(request);
      const SchedulePool::Pick often = asked_often.choose(budget), once = fresh.choose(budget);
      EXPECT_EQ(*often.schedule, *once.schedule) << budget.count;
      EXPECT_LE(often.arena, budget);
      EXPECT_LE(often.arena, arena) << budget.count;
      EXPECT_GE(often.seconds, seconds) << budget.count;
      seconds = often.seconds, arena = often.arena;
    }
  }
}

TEST(OptimalPlanner, NoPolicyIsFasterInItsOwnArena) {
  for (const ModelOptions& options : nets()) {
    const Problem problem(options);
    const PlanRequest request = problem.request();
    OptimalPlanner planner(request);
    for (const Policy* policy : all_policies()) {
      SCOPED_TRACE(fmt::format("{}, {}", options.name, policy->name));
      PlanRequest asked = request;
      asked.policy = policy->name;
      const Plan other = std::get<Plan>(make_plan(asked));
      const SchedulePool::Pick best = planner.choose(other.arena);
      EXPECT_LE(best.arena, other.arena);
      EXPECT_LE(best.seconds, other.predicted_seconds);
    }
  }
}

// The figures that the eviction search goes by are those of the real buffers, nearly.
TEST(EvictionSearch, KnowsWhatItsPlansTake) {
  for (const ModelOptions& options : nets()) {
    SCOPED_TRACE(options.name);
    const Problem problem(options);
    const PlanRequest request = problem.request();
    const ForwardPass pass(problem.graph);
    const ScheduleCost all = cost_of(
        request, schedule_keeping(pass, std::vector<bool>(problem.graph.values.size(), true)));
    const auto frontier = eviction_frontier(pass, problem.costs, all.live_peak);
    ASSERT_FALSE(frontier.empty());
    for (const EvictionPoint& point : frontier) {
      const ScheduleCost real = cost_of(request, schedule_dropping(pass, point.drops));
      EXPECT_LE(static_cast<double>(real.live_peak.count),
                1.005 * static_cast<double>(point.peak.count));
      // Lean copies repeat what is quickly made: each is below 0.2 % of the forward pass.
      EXPECT_NEAR(real.seconds - all.seconds, point.seconds, 5e-3 * all.seconds);
    }
  }
}

// Any schedule can be told by what it drops behind each stage.
TEST(Drops, DescribeTheSchedulesOfAllPolicies) {
  for (const ModelOptions& options : nets()) {
    const Problem problem(options);
    const ForwardPass pass(problem.graph);
    for (const Policy* policy : all_policies()) {
      SCOPED_TRACE(fmt::format("{}, {}", options.name, policy->name));
      PlanRequest request = problem.request();
      request.policy = policy->name;
      request.number = policy->number.usual;
      const Schedule schedule = policy->schedule(request);
      const ScheduleCost told = cost_of(request, schedule_dropping(pass, drops_of(pass, schedule)));
      EXPECT_LE(told.live_peak, cost_of(request, schedule).live_peak);
      EXPECT_LE(told.seconds, cost_of(request, schedule).seconds * (1 + 1e-12));
    }
  }
}

}  // namespace
}  // namespace thimble
