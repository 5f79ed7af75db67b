// Plans of steps over several microbatches: what one turn of the loop leaves for the next.
#include "plan/verify/verify_plan.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

// The loop over microbatches: what the second turn reads is what the first left behind.
struct LoopCase : Case {
  ValueId table, stat;
};

LoopCase loop_case() {
  LoopCase c;
  Builder b(c.graph);
  const ValueId x = b.input("x", kSquare), rate = b.input("rate", {{1}, DType::f32});
  const ValueId w = b.weight("w", kSquare, {});
  const TensorType channel = {{8}, DType::f32};
  const ValueId mean = b.statistic("mean", channel), var = b.statistic("var", channel);
  b.set_phase(Phase::prologue);
  const ValueId zero = b.op("fill", {}, {{"shape", std::vector<int64_t>{8, 8}}, {"value", 0.0}});
  c.table = b.op("scale", {w}, {{"factor", 0.5}});
  b.set_phase(Phase::per_microbatch);
  const ValueId h = b.op("matmul", {x, c.table});
  const auto statistics = b.apply("batch_norm_stats", {h});
  b.apply("running_stats_update", {mean, var, statistics[0], statistics[1]},
          {{"momentum", 0.1}, {"count", int64_t{8}}});
  const ValueId sum = b.accumulate("matmul", {h, x}, {}, {zero})[0];
  const ValueId sum2 = b.accumulate("copy", {h}, {}, {sum})[0];
  b.set_phase(Phase::epilogue);
  b.op("update", {w, sum2, rate}, {{"rule", "sgd_plain"}, {"weight_decay", 0.0}});
  c.graph.results = {sum2};
  verify_graph(c.graph);
  c.costs = flat_costs(c.graph, Bytes(64));
  c.plan = std::get<Plan>(make_plan({.graph = c.graph, .costs = c.costs, .microbatches = 3}));
  return c;
}

TEST(VerifyLoops, ThatCarryTheirSumsPass) {
  const LoopCase c = loop_case();
  EXPECT_EQ(find_fault(c.graph, c.costs, c.plan), std::nullopt);
}

TEST(VerifyLoops, ThatLoseWhatTheyCarryDoNot) {
  const LoopCase c = loop_case();
  // A turn's matmul writes where the table for the next turn lies.
  Plan plan = c.plan;
  PlannedCall* make_table = nullptr;
  PlannedCall* last_of_turn = nullptr;
  for (PlannedCall& call : plan.calls) {
    const Node& node = c.graph[call.node];
    if (node.outputs[0] == c.table) make_table = &call;
    if (node.phase == Phase::per_microbatch && call.workspace_size.count > 0) last_of_turn = &call;
  }
  ASSERT_TRUE(make_table != nullptr && last_of_turn != nullptr);
  last_of_turn->workspace_at = make_table->outputs[0];
  EXPECT_NE(find_fault(c.graph, c.costs, plan).value_or("").find("does not hold it"),
            std::string::npos);
  // The same plan is sound when there is no second turn (but for its claims).
  plan.microbatches = 1;
  EXPECT_EQ(find_fault(c.graph, c.costs, plan).value_or("").find("does not hold it"),
            std::string::npos);
}

// A value that a loop carries may not be lost between its turns, wherever that happens: every sum of a real
// call, overwritten by every kind of call in turn.
TEST(VerifyLoops, NoSumOfALoopMayBeOverwritten) {
  for (const Case& c : looped_cases()) {
    std::mt19937 random(3);
    int tried = 0;
    for (const PlannedCall& begin : c.plan.calls) {
      const Node& node = c.graph[begin.node];
      if (node.phase != Phase::prologue) continue;
      Plan plan = c.plan;
      const auto s = pick(plan, random, [&](size_t i) {
        const Node& other = c.graph[plan.calls[i].node];
        return other.phase == Phase::per_microbatch && !is_update(other) &&
               other.accumulate.empty() && !other.op->view;
      });
      ASSERT_TRUE(s.has_value());
      plan.calls[*s].outputs[0] = begin.outputs[0];
      EXPECT_TRUE(find_fault(c.graph, c.costs, plan).has_value()) << c.name << ": " << node.name;
      ++tried;
    }
    EXPECT_GE(tried, 8) << c.name;
  }
}

TEST(VerifyLoops, TheNumberOfTurnsIsPartOfThePlan) {
  for (const Case& c : looped_cases()) {
    for (const int turns : {0, -1}) {
      Plan plan = c.plan;
      plan.microbatches = turns;
      EXPECT_TRUE(find_fault(c.graph, c.costs, plan).has_value()) << c.name;
    }
    // The second turn is like all others: only what the step costs depends on their number.
    Plan more =
        lay_out({.graph = c.graph, .costs = c.costs, .microbatches = 7}, schedule_of(c.plan));
    EXPECT_EQ(more.calls, c.plan.calls) << c.name;
    EXPECT_EQ(find_fault(c.graph, c.costs, more), std::nullopt) << c.name;
    more.microbatches = 8;
    EXPECT_TRUE(find_fault(c.graph, c.costs, more).has_value()) << c.name;
  }
}

TEST(VerifyLoops, PhasesKeepTheirOrder) {
  const LoopCase c = loop_case();
  Plan plan = c.plan;
  std::rotate(plan.calls.begin(), plan.calls.begin() + 1, plan.calls.end());  // `fill` goes last
  EXPECT_TRUE(find_fault(c.graph, c.costs, plan).has_value());
}

}  // namespace
}  // namespace thimble
