#include "plan/search/never_worth_recomputing.h"

#include <algorithm>

#include "execute/costs.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

int repeated(const Graph& graph, const Schedule& schedule, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(schedule.calls, [&](const Call& call) {
    return call.recompute && graph[call.node].op->name == op;
  }));
}

// Segments drop all that is inside of them, a batch norm's statistics as well: a few kilobytes that
// cost a pass over a tensor.
TEST(AlwaysKept, StatisticsAreNotComputedAgain) {
  const Graph graph =
      make_training_graph({.name = "wrn-28-2", .batch = 100}, parse_optimizer("nesterov"))
          .model.graph;
  const Costs costs = gather_costs(graph, *make_backend("null", 1));
  const PlanRequest request = {.graph = graph, .costs = costs, .policy = "sqrt_segments"};
  const ForwardPass pass(graph);
  const std::vector<bool> kept_values = values_never_worth_recomputing(pass, costs);
  const Schedule plain = find_policy("sqrt_segments")->schedule(request);
  ASSERT_GT(repeated(graph, plain, "batch_norm_stats"), 10);

  const Schedule fuller = keeping_all_of(pass, kept_values, plain);
  EXPECT_EQ(repeated(graph, fuller, "batch_norm_stats"), 0);
  EXPECT_EQ(repeated(graph, fuller, "conv2d"), repeated(graph, plain, "conv2d"));
  const ScheduleCost before = cost_of(request, plain), after = cost_of(request, fuller);
  EXPECT_LT(after.seconds, before.seconds);
  EXPECT_LT(after.live_peak, before.live_peak + Bytes(before.live_peak.count / 500));
  // A large and cheap value is none.
  for (const NodeId node : pass.nodes) {
    if (graph[node].op->name != "conv2d") continue;
    EXPECT_FALSE(kept_values[graph[node].outputs[0].at()]);
  }
}

}  // namespace
}  // namespace thimble
