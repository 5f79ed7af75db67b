// A pool of schedules against a list of them, whatever was asked before.
#include "plan/search/schedule_pool.h"

#include <algorithm>

#include "support/plan_cases.h"

namespace thimble {
namespace {

struct Listed {
  double seconds;
  Bytes arena;
  auto operator<=>(const Listed&) const = default;
};

// Forward nodes are repeated at random. Every call takes a second, so that many take as long.
std::vector<Schedule> some_schedules(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Schedule> all;
  for (int i = 0; i < 24; ++i) {
    all.push_back(with_recomputation(graph, random, 0.05 * static_cast<double>(i % 6)));
  }
  return all;
}

TEST(SchedulePool, TakesTheFastestThatFitsAndOfThoseTheSmallest) {
  int ties = 0;
  for (const ModelOptions& model : {small_mlp(), small_wrn(), small_lstm()}) {
    SCOPED_TRACE(model.name);
    const Graph graph = make_training_graph(model, parse_optimizer("sgd")).model.graph;
    const Costs costs = flat_costs(graph);
    const PlanRequest request = {.graph = graph, .costs = costs};
    const std::vector<Schedule> schedules = some_schedules(graph, 5);
    std::vector<Listed> list;
    std::vector<Bytes> budgets;
    for (const Schedule& schedule : schedules) {
      const Plan plan = lay_out(request, schedule);
      list.push_back({plan.predicted_seconds, plan.arena});
      budgets.insert(budgets.end(), {plan.arena, plan.arena - Bytes(1)});
    }
    for (const Listed& a : list) {
      for (const Listed& b : list) ties += a.seconds == b.seconds && a.arena < b.arena ? 1 : 0;
    }
    const auto fill = [&](SchedulePool& pool) {
      for (const Schedule& schedule : schedules) pool.add(schedule);
    };
    SchedulePool shared(request, SchedulePool::Slack::left);
    fill(shared);
    std::mt19937 random(7);
    std::ranges::shuffle(budgets, random);
    for (const Bytes budget : budgets) {
      std::optional<Listed> expected;
      for (const Listed& each : list) {
        if (each.arena <= budget && (!expected || each < *expected)) expected = each;
      }
      SchedulePool fresh(request, SchedulePool::Slack::left);
      fill(fresh);
      for (SchedulePool* pool : {&shared, &fresh}) {
        const auto got = pool->fastest_within(budget);
        ASSERT_EQ(got.has_value(), expected.has_value()) << budget.count;
        if (!got) continue;
        EXPECT_EQ(got->seconds, expected->seconds) << budget.count;
        EXPECT_EQ(got->arena, expected->arena) << budget.count;
        const Plan plan = lay_out(request, *got->schedule);
        EXPECT_EQ(plan.arena, got->arena);
        EXPECT_EQ(plan.predicted_seconds, got->seconds);
      }
    }
    const auto least = std::ranges::min(
        list, {}, [](const Listed& each) { return std::pair(each.arena, each.seconds); });
    EXPECT_EQ(shared.smallest().arena, least.arena);
    EXPECT_EQ(shared.smallest().seconds, least.seconds);
  }
  EXPECT_GT(ties, 0) << "or nobody asked for the rule on them";
}

}  // namespace
}  // namespace thimble
