// verify_graph on graphs broken in one way each: it must name that way.
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/builder.h"

namespace thimble {
namespace {

const TensorType kType = {{2, 3}};

// x -> relu -> scale, and scale added into the state m.
class VerifyGraph : public testing::Test {
 protected:
  VerifyGraph() {
    x = build.input("x", kType);
    m = build.state("m", kType);
    y = build.op("relu", {x});
    z = build.op("scale", {y}, {{"factor", 2.0}});
    sum = build.accumulate("copy", {z}, {}, {m}).front();
  }

  void expect_fault(const std::string& what) {
    try {
      verify_graph(graph);
      ADD_FAILURE() << "accepted a graph in which a node " << what;
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  }

  Graph graph;
  Builder build{graph};
  ValueId x, m, y, z, sum;
};

TEST_F(VerifyGraph, AcceptsASoundGraph) { EXPECT_NO_THROW(verify_graph(graph)); }

TEST_F(VerifyGraph, ValueFromNowhere) {
  graph[y].producer = {};
  expect_fault("has no producer and is no source");
}

TEST_F(VerifyGraph, NodeWithoutOp) {
  graph.nodes[0].op = nullptr;
  expect_fault("has no op");
}

TEST_F(VerifyGraph, PhasesOutOfOrder) {
  graph.nodes[0].phase = Phase::epilogue;
  expect_fault("runs in an earlier phase");
}

TEST_F(VerifyGraph, AccumulatesIntoTooMany) {
  graph.nodes[2].accumulate.push_back({});
  expect_fault("accumulates into another number of values");
}

TEST_F(VerifyGraph, ReadsOutOfRange) {
  graph.nodes[0].inputs[0] = {1000};
  expect_fault("reads a value out of range");
}

TEST_F(VerifyGraph, ReadsNothing) {
  graph.nodes[0].inputs[0] = {};
  expect_fault("reads a value out of range");
}

TEST_F(VerifyGraph, ReadsBeforeItIsMade) {
  graph.nodes[0].inputs[0] = z;
  expect_fault("before it is made");
}

TEST_F(VerifyGraph, ReadsAfterOverwriting) {
  build.op("relu", {m});
  expect_fault("after 'copy#2' overwrote it");
}

TEST_F(VerifyGraph, AddsIntoTheSameValueTwice) {
  build.accumulate("copy", {z}, {}, {m});
  expect_fault("overwrote it");
}

TEST_F(VerifyGraph, WrongNumberOfOutputs) {
  graph.nodes[0].outputs.push_back(z);
  expect_fault("another number of outputs");
}

TEST_F(VerifyGraph, MakesOutOfRange) {
  graph.nodes[0].outputs[0] = {1000};
  expect_fault("makes a value out of range");
}

TEST_F(VerifyGraph, MadeTwice) {
  graph.nodes[1].outputs[0] = y;
  expect_fault("is not the one producer");
}

TEST_F(VerifyGraph, ProducerPointsElsewhere) {
  graph[z].producer = {0};
  expect_fault("is not the one producer");
}

TEST_F(VerifyGraph, WrongType) {
  graph[y].type.dtype = DType::f16;
  expect_fault("makes f16[2,3] where its op makes f32[2,3]");
}

TEST_F(VerifyGraph, AddsIntoAnotherType) {
  graph[m].type.shape = {6};
  expect_fault("adds into a value of another type");
}

TEST_F(VerifyGraph, OpCannotAdd) {
  graph.nodes[0].accumulate = {build.state("n", kType)};
  expect_fault("cannot add into its output");
}

TEST_F(VerifyGraph, ReadsWhatItAddsInto) {
  graph.nodes[2].inputs[0] = m;
  expect_fault("reads a value that it adds into");
}

TEST_F(VerifyGraph, AddsIntoAFrozenWeight) {
  graph[m].role = Role::frozen;
  expect_fault("overwrites a frozen weight");
}

TEST_F(VerifyGraph, InputsThatDoNotFitTheOp) {
  graph[x].type.dtype = DType::u8;
  EXPECT_THROW(verify_graph(graph), UserError);
}

}  // namespace
}  // namespace thimble
