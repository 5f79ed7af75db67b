#include "graph/builder.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace thimble {
namespace {

const TensorType kType = {{2, 3}};

TEST(Builder, MakesNodesAndValues) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId w = build.weight("w", {{3}}, {Init::Kind::normal, 0.1});
  const ValueId y = build.op("add", {x, w});
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph[y].producer, NodeId{0});
  EXPECT_EQ(graph[y].type, kType);
  EXPECT_EQ(graph[y].role, Role::activation);
  EXPECT_EQ(graph[w].role, Role::weight);
  EXPECT_EQ(graph.nodes[0].inputs, (std::vector{x, w}));
  EXPECT_EQ(parameter_count(graph), 3);
  EXPECT_EQ(graph.find("w"), w);
  EXPECT_FALSE(graph.find("v").valid());
  EXPECT_NO_THROW(verify_graph(graph));
}

TEST(Builder, NamesFollowScopes) {
  Graph graph;
  Builder build(graph);
  const Builder::Scope outer(build, "block1");
  ValueId w, y;
  {
    const Builder::Scope inner(build, "conv");
    w = build.weight("w", kType, {});
    y = build.op("relu", {w});
  }
  EXPECT_EQ(graph[w].name, "block1.conv.w");
  EXPECT_EQ(graph[y].name, "block1.conv.relu#0");
  EXPECT_EQ(graph[build.input("x", kType)].name, "block1.x");
}

TEST(Builder, OutputsOfOneNodeHaveTheirOwnNames) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", {{1, 4, 4, 2}});
  const auto outputs = build.apply("max_pool", {x}, {{"kernel", int64_t{2}}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(graph[outputs[0]].name, "max_pool#0:0");
  EXPECT_EQ(graph[outputs[1]].name, "max_pool#0:1");
  EXPECT_EQ(graph[outputs[1]].type, (TensorType{{1, 2, 2, 2}, DType::u8}));
}

TEST(Builder, EqualConstantsAreOneValue) {
  Graph graph;
  Builder build(graph);
  const ValueId one = build.constant(1, kType);
  EXPECT_EQ(build.constant(1, kType), one);
  EXPECT_NE(build.constant(2, kType), one);
  EXPECT_NE(build.constant(1, {{3}}), one);
}

TEST(Builder, StampsPhaseAndDirection) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  build.op("relu", {x});
  build.set_phase(Phase::epilogue);
  build.set_backward(true);
  build.op("relu", {x});
  EXPECT_EQ(graph.nodes[0].phase, Phase::per_microbatch);
  EXPECT_FALSE(graph.nodes[0].backward);
  EXPECT_EQ(graph.nodes[1].phase, Phase::epilogue);
  EXPECT_TRUE(graph.nodes[1].backward);
}

TEST(Builder, AccumulationTakesOverTheRole) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId m = build.state("m", kType);
  const ValueId sum = build.accumulate("scale", {x}, {{"factor", 2.0}}, {m}).front();
  EXPECT_EQ(graph[sum].role, Role::optimizer_state);
  EXPECT_EQ(graph.nodes[0].added_into(0), m);
  EXPECT_EQ(signature_of(graph, {0}).accumulate, 1u);
  EXPECT_EQ(previous_versions(graph)[sum.at()], m);
  EXPECT_EQ(readers_of(graph)[m.at()], std::vector{NodeId{0}});
  EXPECT_NO_THROW(verify_graph(graph));
}

TEST(Builder, RefusesWhatItCannotMean) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId y = build.input("y", {{4, 5}});
  EXPECT_THROW(build.op("no_such_op", {x}), InternalError);
  EXPECT_THROW(build.op("relu", {ValueId{}}), InternalError);
  EXPECT_THROW(build.op("relu", {ValueId{99}}), InternalError);
  EXPECT_THROW(build.op("add", {x, y}), UserError);
  EXPECT_THROW(build.accumulate("relu", {x}, {}, {x}), InternalError);  // relu cannot be added into
  EXPECT_THROW(build.accumulate("copy", {x}, {}, {y}), InternalError);  // another type
  EXPECT_TRUE(graph.nodes.empty()) << "a refused node must leave nothing behind";
}

TEST(PrintGraph, IsOneLinePerNode) {
  Graph graph;
  graph.name = "tiny";
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId w = build.weight("w", {{3}}, {});
  const ValueId m = build.state("m", kType);
  const ValueId y = build.op("mul", {x, w});
  build.set_phase(Phase::epilogue);
  const ValueId sum = build.accumulate("scale", {y}, {{"factor", 0.5}}, {m}).front();
  graph.results = {sum};
  EXPECT_EQ(print_graph(graph),
            "graph tiny\n"
            "  input x : f32[2,3]\n"
            "  weight w : f32[3]\n"
            "  optimizer_state m : f32[2,3]\n"
            "  mul#0 = mul(x, w) -> f32[2,3]\n"
            "  scale#1 = scale(mul#0){factor=0.5} -> f32[2,3] += m @end\n"
            "  results scale#1\n");
}

}  // namespace
}  // namespace thimble
