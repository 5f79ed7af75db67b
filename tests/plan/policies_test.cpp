// Promises of every policy beyond its own idea: allocation levels, numbers, marks.
#include "plan/policy.h"
#include "plan/schedule/recursive_segments.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"
#include "transform/marks.h"

namespace thimble {
namespace {

Plan plan_with(const Case& c, std::string_view policy, std::optional<Bytes> budget = {}) {
  const PlanResult result = make_plan(
      {.graph = c.graph, .costs = c.costs, .budget = budget, .policy = std::string(policy)});
  EXPECT_TRUE(std::holds_alternative<Plan>(result)) << policy;
  return std::get<Plan>(result);
}

TEST(AllocationLevels, EachSharesMoreThanTheOneBefore) {
  for (const ModelOptions& options :
       {small_mlp(), small_wrn(), small_lstm(), small_lstm_runs(), small_unet()}) {
    SCOPED_TRACE(options.name);
    const Case c = planned_model(options);
    const Plan none = plan_with(c, "none"), in_place = plan_with(c, "inplace");
    const Plan sharing = plan_with(c, "sharing");
    EXPECT_GT(none.arena, in_place.arena);
    EXPECT_GT(in_place.arena, sharing.arena);
    EXPECT_EQ(sharing.calls, c.plan.calls);  // keep_all by another name
    EXPECT_EQ(sharing.arena, c.plan.arena);
    for (const Plan& plan : {none, in_place, sharing}) {
      EXPECT_EQ(find_fault(c.graph, c.costs, plan), std::nullopt);
      EXPECT_EQ(schedule_of(plan), schedule_of(c.plan));
      EXPECT_EQ(plan.extra_flops, 0);
    }
  }
}

// Counted by hand: `none` is the sum of all values, each rounded up, and the largest scratch.
TEST(AllocationLevels, NoneIsTheSumOfAllValues) {
  const Case c = planned_model(small_wrn());
  Bytes sum, scratch;
  for (size_t v = 0; v < c.graph.values.size(); ++v) {
    const Value& value = c.graph.values[v];
    // The next version of a value, or the sum added into it, has that value's bytes; so has a view.
    if (previous_versions(c.graph)[v].valid()) continue;
    if (value.producer.valid() && c.graph[value.producer].op->view) continue;
    sum += align_up(value.type.bytes());
  }
  for (const NodeCost& cost : c.costs.nodes) scratch = std::max(scratch, align_up(cost.workspace));
  EXPECT_EQ(plan_with(c, "none").arena, sum + scratch);
}

TEST(PolicyNumbers, AreSpeltBehindTheName) {
  EXPECT_EQ(choose_policy("log_recursive").number, 1);
  EXPECT_EQ(choose_policy("log_recursive:3").number, 3);
  EXPECT_EQ(choose_policy("log_recursive:3").policy, find_policy("log_recursive"));
  EXPECT_EQ(choose_policy("keep_all").policy, find_policy("keep_all"));
}

TEST(PolicyNumbers, WrongOnesAreNamed) {
  const auto refusal = [](std::string_view spelling) -> std::string {
    try {
      choose_policy(spelling);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  for (const char* number :
       {"", "0", "-1", "1001", "2.5", "3x", "three", "99999999999", " 2", "1:2"}) {
    const std::string spelling = fmt::format("log_recursive:{}", number);
    EXPECT_NE(refusal(spelling).find("fan-out"), std::string::npos) << spelling;
    EXPECT_NE(refusal(spelling).find(spelling), std::string::npos) << spelling;
  }
  EXPECT_NE(refusal("keep_all:2").find("takes no number"), std::string::npos);
  EXPECT_NE(refusal("magic:2").find("'magic'"), std::string::npos);
  EXPECT_NE(refusal("").find("keep_all"), std::string::npos);
}

// The unet is there for this: a net that no single value cuts in two.
TEST(Unet, HasNoCutPointsBetweenItsFirstSkipAndItsLast) {
  const Case c = planned_model(small_unet());
  const ForwardPass pass(c.graph);
  int inside = 0;
  bool below_first_skip = false;
  for (const Block& block : cut_into_blocks(pass, c.costs)) {
    if (below_first_skip) {
      ++inside;
      EXPECT_GE(block.enters.size(), 2u);
    }
    for (int p = block.begin; p < block.end; ++p) {
      const std::string& name = c.graph[pass.nodes[static_cast<size_t>(p)]].name;
      if (name.starts_with("max_pool")) below_first_skip = true;
      if (name.starts_with("up1.concat")) below_first_skip = false;
    }
  }
  EXPECT_GE(inside, 2);
}

// A fan-out of one is halving; more cuts at once repeat less.
TEST(LogRecursive, AHigherFanOutRepeatsLess) {
  Case c = planned_model({.name = "mlp:layers=200,hidden=16", .batch = 16});
  const auto blocks_run = [&](std::string_view policy) {
    const Plan plan = plan_with(c, policy);
    EXPECT_EQ(find_fault(c.graph, c.costs, plan), std::nullopt);
    return std::count_if(plan.calls.begin(), plan.calls.end(),
                         [](const PlannedCall& call) { return call.recompute; });
  };
  EXPECT_EQ(plan_with(c, "log_recursive").calls, plan_with(c, "log_recursive:1").calls);
  EXPECT_GT(blocks_run("log_recursive"), blocks_run("log_recursive:3"));
  EXPECT_GT(blocks_run("log_recursive:3"), blocks_run("log_recursive:20"));
  EXPECT_LT(plan_with(c, "log_recursive").arena, plan_with(c, "log_recursive:100").arena);
}

// Every policy and budget obeys marks. A value marked `keep` is made once. One marked `recompute` is
// not there from the forward pass when the backward pass reads it.
class Marked : public testing::TestWithParam<const Policy*> {
 protected:
  void expect_obeyed(const Case& c, const Plan& plan) {
    ASSERT_EQ(find_fault(c.graph, c.costs, plan), std::nullopt);
    std::vector<int> runs(c.graph.nodes.size(), 0);
    bool backward = false;
    for (const PlannedCall& call : plan.calls) {
      const Node& node = c.graph[call.node];
      ++runs[call.node.at()];
      if (!node.backward || is_update(node)) continue;
      backward = true;
      for (const ValueId input : node.inputs) {
        const NodeId maker = c.graph[input].producer;
        if (!maker.valid() || c.graph[maker].mark != Mark::recompute) continue;
        EXPECT_GT(runs[maker.at()], 1) << node.name << " reads " << c.graph[input].name;
      }
    }
    EXPECT_TRUE(backward);
    for (size_t n = 0; n < runs.size(); ++n) {
      if (c.graph.nodes[n].mark != Mark::keep) continue;
      EXPECT_EQ(runs[n], 1) << c.graph.nodes[n].name;
    }
  }
};

TEST_P(Marked, AreObeyedAtEveryBudget) {
  for (const auto& [options, marks] :
       {std::pair(small_wrn(),
                  Marks{{"*conv2.conv2d*"}, {"*bn2.batch_norm#*", "*bn1.batch_norm_stats*"}}),
        std::pair(small_lstm(), Marks{{"t2.*"}, {"t1.lstm_cell*"}}),
        std::pair(small_mlp(), Marks{{"hidden1.*"}, {"hidden2.bias_act*"}}),
        std::pair(small_unet(), Marks{{"down1.*"}, {"*.concat*", "bottom.*batch_norm#*"}})}) {
    SCOPED_TRACE(options.name);
    Case c = planned_model(options);
    apply_marks(c.graph, marks);
    const auto with = [&](std::optional<Bytes> budget) {
      return make_plan({.graph = c.graph,
                        .costs = c.costs,
                        .budget = budget,
                        .policy = std::string(GetParam()->name)});
    };
    expect_obeyed(c, std::get<Plan>(with({})));
    const Bytes floor = std::get<Infeasible>(with(Bytes(64))).min_bytes;
    for (const int64_t percent : {100, 115, 140}) {
      expect_obeyed(c, std::get<Plan>(with(Bytes(floor.count * percent / 100))));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Marked, testing::ValuesIn(all_policies()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(Marks, OfTheBuilderReachTheGraph) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  {
    const Builder::Marked kept(b, Mark::keep);
    b.op("tanh", {x});
    {
      const Builder::Marked again(b, Mark::recompute);
      b.op("tanh", {x});
    }
    b.op("tanh", {x});
  }
  b.op("tanh", {x});
  const std::vector<Mark> expected = {Mark::keep, Mark::recompute, Mark::keep, Mark::automatic};
  for (size_t n = 0; n < expected.size(); ++n) EXPECT_EQ(graph.nodes[n].mark, expected[n]) << n;
}

TEST(Marks, ContradictionsAndPatternsForNothingAreRefused) {
  const auto refusal = [](const Marks& marks) -> std::string {
    Case c = planned_model(small_wrn());
    try {
      apply_marks(c.graph, marks);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal({{"*conv1*"}, {"*conv2.*"}}), "none");
  EXPECT_NE(refusal({{"*conv*"}, {"*conv2.*"}}).find("both to keep and to recompute"),
            std::string::npos);
  EXPECT_NE(refusal({{"*attention*"}, {}}).find("--keep '*attention*' matches no node"),
            std::string::npos);
  // A node that may never run twice cannot be asked to.
  EXPECT_NE(refusal({{}, {"*running_stats_update*"}}).find("matches no node"), std::string::npos);
}

TEST(Marks, OfAModelAndOfTheCallerMayNotContradict) {
  Graph graph;
  Builder b(graph);
  const Builder::Marked kept(b, Mark::keep);
  graph.results = {b.op("tanh", {b.input("x", kSquare)})};
  EXPECT_THROW(apply_marks(graph, {{}, {"tanh*"}}), UserError);
  apply_marks(graph, {{"tanh*"}, {}});
  EXPECT_EQ(graph.nodes[0].mark, Mark::keep);
}

}  // namespace
}  // namespace thimble
