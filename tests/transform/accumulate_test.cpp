#include "transform/accumulate.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/order.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

const TensorType kSquare = {{4, 4}, DType::f32};

// Runs the loop `times` and returns the first element of `sum`, with x = 1, 2, 3, ...
float sum_over(const Graph& graph, ValueId x, ValueId sum, int times) {
  Interpreter run(graph);
  run.run_phase(Phase::prologue);
  for (int m = 1; m <= times; ++m) {
    std::fill_n(run[x].ref().as<float>(), run[x].ref().elements(), static_cast<float>(m));
    run.run_phase(Phase::per_microbatch);
  }
  run.run_phase(Phase::epilogue);
  return *run[sum].ref().as<float>();
}

TEST(Accumulate, AnOpThatCanAddsInPlace) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId y = b.op("scale", {x}, {{"factor", 2.0}});
  const Accumulation growth = {add_zero(graph, y, "sum"), y};
  const std::vector<ValueId> sums = accumulate_into(graph, {&growth, 1});
  sort_by_phase(graph);
  verify_graph(graph);
  EXPECT_EQ(sums, std::vector<ValueId>{y});
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].phase, Phase::prologue);
  EXPECT_EQ(sum_over(graph, x, y, 3), 2 * (1 + 2 + 3));
}

TEST(Accumulate, AValueThatOthersReadIsAddedByANodeOfItsOwn) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId y = b.op("scale", {x}, {{"factor", 2.0}});
  const ValueId z = b.op("scale", {y}, {{"factor", 1.0}});  // wants this turn's y, not the sum
  const Accumulation growths[] = {{add_zero(graph, y, "y.sum"), y},
                                  {add_zero(graph, z, "z.sum"), z}};
  const std::vector<ValueId> sums = accumulate_into(graph, growths);
  sort_by_phase(graph);
  verify_graph(graph);
  EXPECT_NE(sums[0], y);
  EXPECT_EQ(sums[1], z);
  EXPECT_EQ(sum_over(graph, x, sums[0], 3), 12);
  EXPECT_EQ(sum_over(graph, x, sums[1], 3), 12);
}

TEST(Accumulate, AnOpThatCannotAddIsHelped) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId y = b.op("relu", {x});
  ASSERT_EQ(find_op("relu")->accumulates, 0u);
  const Accumulation growth = {add_zero(graph, y, "sum"), y};
  const std::vector<ValueId> sums = accumulate_into(graph, {&growth, 1});
  sort_by_phase(graph);
  verify_graph(graph);
  EXPECT_EQ(sum_over(graph, x, sums[0], 4), 10);
}

TEST(Accumulate, OneValueMayGrowTwice) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId y = b.op("scale", {x}, {{"factor", 1.0}});
  const Accumulation growths[] = {{add_zero(graph, y, "a"), y}, {add_zero(graph, y, "b"), y}};
  const std::vector<ValueId> sums = accumulate_into(graph, growths);
  sort_by_phase(graph);
  verify_graph(graph);
  EXPECT_NE(sums[0], sums[1]);
  for (const ValueId sum : sums) EXPECT_EQ(sum_over(graph, x, sum, 2), 3);
}

TEST(Accumulate, ASumInsideOfTheLoopGrowsFromItsFirstTerm) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId first = b.op("scale", {x}, {{"factor", 1.0}});
  const ValueId both = b.accumulate("scale", {x}, {{"factor", 10.0}}, {first})[0];
  const Accumulation growth = {add_zero(graph, both, "sum"), both};
  const std::vector<ValueId> sums = accumulate_into(graph, {&growth, 1});
  sort_by_phase(graph);
  verify_graph(graph);
  EXPECT_EQ(sums[0], both);
  EXPECT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(sum_over(graph, x, both, 2), 33);
}

TEST(SortByPhase, IdsFollowTheNodes) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare);
  const ValueId y = b.op("relu", {x});
  b.set_differentiates(graph[y].producer);
  b.set_phase(Phase::epilogue);
  b.op("relu", {y});
  b.set_phase(Phase::prologue);
  const ValueId begun = b.op("relu", {x});
  sort_by_phase(graph);
  verify_graph(graph);
  EXPECT_EQ(graph[begun].producer, NodeId{0});
  EXPECT_EQ(graph[y].producer, NodeId{1});
  EXPECT_EQ(graph.nodes[0].differentiates, NodeId{1});
  EXPECT_EQ(graph.nodes[2].differentiates, NodeId{1});
}

}  // namespace
}  // namespace thimble
