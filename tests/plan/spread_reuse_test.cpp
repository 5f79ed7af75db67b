#include "plan/bytes/spread_reuse.h"

#include <algorithm>

#include "execute/streams.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"

namespace thimble {
namespace {

// As a device has it whose kernels all want scratch.
Costs with_scratch(Costs costs, int64_t bytes) {
  for (NodeCost& node : costs.nodes) node.workspace = Bytes(bytes);
  return costs;
}

void expect_sound(const Graph& graph, const Costs& costs, const Plan& plan) {
  const Plan spread = spread_reuse(graph, costs, plan);
  EXPECT_EQ(find_fault(graph, costs, spread), std::nullopt);
  EXPECT_EQ(spread.arena, plan.arena);
  EXPECT_EQ(spread.sources.size(), plan.sources.size());
  for (size_t v = 0; v < plan.sources.size(); ++v) {
    EXPECT_TRUE(!is_persistent(graph.values[v].role) || spread.sources[v] == plan.sources[v]);
  }
  EXPECT_EQ(schedule_of(spread), schedule_of(plan));
  EXPECT_EQ(spread_reuse(graph, costs, plan), spread) << "not the same twice";
}

TEST(Spread, PlansOfTheZooStaySound) {
  for (const ModelOptions& options :
       {small_mlp(), small_wrn(), small_lstm(), small_lstm_runs(), small_unet()}) {
    for (const int microbatches : {1, 3}) {
      const Case c = planned_model(options, "nesterov", microbatches);
      for (const int64_t scratch : {0, 1000, 40000}) {
        const Costs costs = with_scratch(c.costs, scratch);
        for (const char* policy : {"keep_all", "none", "sqrt_segments"}) {
          SCOPED_TRACE(fmt::format("{} {} {}", options.name, scratch, policy));
          const PlanResult made = make_plan(
              {.graph = c.graph, .costs = costs, .policy = policy, .microbatches = microbatches});
          expect_sound(c.graph, costs, std::get<Plan>(made));
        }
      }
    }
  }
}

TEST(Spread, RandomPlansStaySound) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomStep call = random_step(seed);
    const Costs costs =
        with_scratch({.nodes = std::vector<NodeCost>(call.graph.nodes.size())}, 64 * (seed % 7));
    for (const char* policy : {"keep_all", "sqrt_segments"}) {
      const PlanResult made = make_plan({.graph = call.graph, .costs = costs, .policy = policy});
      expect_sound(call.graph, costs, std::get<Plan>(made));
    }
  }
}

// How long the calls take, one second each, on so many streams.
double seconds_of(const Graph& graph, const Plan& plan, int streams) {
  std::vector<CallUse> uses;
  const auto range = [](Bytes at, Bytes size) {
    return ByteRange{at.count, at.count + size.count};
  };
  for (const PlannedCall& call : plan.calls) {
    const Node& node = graph[call.node];
    if (node.op->view) continue;
    CallUse& use = uses.emplace_back();
    use.seconds = 1;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      use.reads.push_back(range(call.inputs[i], graph[node.inputs[i]].type.bytes()));
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      use.writes.push_back(range(call.outputs[k], graph[node.outputs[k]].type.bytes()));
    }
    use.writes.push_back(range(call.workspace_at, call.workspace_size));
  }
  const std::vector<StreamCall> order = spread_over_streams(uses, streams);
  std::vector<double> over(uses.size()), free_at(static_cast<size_t>(streams));
  for (size_t i = 0; i < uses.size(); ++i) {
    double& stream = free_at[static_cast<size_t>(order[i].stream)];
    for (const int other : order[i].waits_for) {
      stream = std::max(stream, over[static_cast<size_t>(other)]);
    }
    over[i] = stream += uses[i].seconds;
  }
  return *std::ranges::max_element(free_at);
}

// Layers of a recurrent net follow each other diagonally: all that keeps them apart is scratch.
TEST(Spread, LayersOfARecurrentNetRunAtTheSameTime) {
  const ModelOptions options = {.name = "lstm:layers=4,hidden=32,length=64,steps-at-once=4",
                                .batch = 16};
  const Case c = planned_model(options, "sgd");
  const Costs costs = with_scratch(c.costs, 1 << 15);
  const Plan plan = std::get<Plan>(make_plan({.graph = c.graph, .costs = costs}));
  const double one = seconds_of(c.graph, plan, 1);
  EXPECT_GT(seconds_of(c.graph, plan, 4), 0.9 * one);
  EXPECT_LT(seconds_of(c.graph, spread_reuse(c.graph, costs, plan), 4), 0.75 * one);
}

}  // namespace
}  // namespace thimble
