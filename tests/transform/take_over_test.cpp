#include <gtest/gtest.h>

#include <algorithm>

#include "autodiff/autodiff.h"
#include "backend/backend.h"
#include "graph/builder.h"
#include "support/interpreter.h"
#include "transform/fuse_loss_into_backward.h"

namespace thimble {
namespace {

// A loss at each of three runs of time steps, the weight shared, and their sum.
struct Losses {
  Graph graph;
  ValueId weight, loss, correct;
  std::vector<ValueId> gradients;

  explicit Losses(bool reads_correct = false, bool last_first = true) {
    constexpr int64_t kRows = 10, kWidth = 6, kClasses = 9;
    Builder b(graph);
    const ValueId x = b.weight("x", {{kRows, kWidth}}, {Init::Kind::normal, 1});
    weight = b.weight("weight", {{kClasses, kWidth}}, {Init::Kind::normal, 0.3});
    const ValueId targets = b.input("targets", {{kRows}, DType::i32});
    const ValueId normalizer = b.constant(0.125, {{1}});
    std::vector<std::vector<ValueId>> made;
    for (int run = 0; run < 3; ++run) {
      const ValueId h = b.op("scale", {x}, {{"factor", 1.0 + run}});
      made.push_back(b.apply("vocabulary_loss", {h, weight, targets, normalizer},
                             {{"label_smoothing", 0.1}, {"rows_at_once", int64_t{4}}}));
    }
    // The last first, as the backward pass meets them, or the other way round.
    if (!last_first) std::ranges::reverse(made);
    loss = made[2][0], correct = made[2][2];
    for (const size_t run : {size_t{1}, size_t{0}}) {
      loss = b.op("add", {made[run][0], loss});
      correct = b.op("add", {made[run][2], correct});
    }
    if (reads_correct) loss = b.op("mul", {loss, correct});
    graph.results = {loss, correct};
    const GradientRoot root = {loss, b.constant(1, {{1}})};
    const ValueId wrt[] = {x, weight};
    gradients = add_gradients(graph, {&root, 1}, wrt);
  }

  size_t count(std::string_view op) const {
    return static_cast<size_t>(
        std::ranges::count_if(graph.nodes, [&](const Node& node) { return node.op->name == op; }));
  }

  // The results and gradients of a step.
  std::vector<Tensor> run(Backend* backend) const {
    Interpreter interpreter(graph, backend, 5);
    Tensor& targets = interpreter[graph.find("targets")];
    for (int64_t i = 0; i < targets.elements(); ++i) targets.set(i, static_cast<double>(i % 9));
    interpreter.run();
    std::vector<Tensor> made;
    for (const ValueId value : {loss, correct, gradients[0], gradients[1]}) {
      made.push_back(interpreter[value]);
    }
    return made;
  }
};

class TakeOver : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Sums, TakeOver, testing::Bool(),
                         [](const auto& test) { return test.param ? "LastFirst" : "FirstFirst"; });

TEST_P(TakeOver, LossesAndGradientsKeepTheirBits) {
  const Losses before(false, GetParam());
  Losses after(false, GetParam());
  fuse_loss_into_backward(after.graph);
  verify_graph(after.graph);
  EXPECT_EQ(before.count("vocabulary_loss"), 3u);
  EXPECT_EQ(after.count("vocabulary_loss"), 0u);
  EXPECT_EQ(after.count("vocabulary_loss_backward"), 3u);
  const auto cpu = make_backend("cpu", 2);
  for (Backend* backend : {static_cast<Backend*>(nullptr), cpu.get()}) {
    const std::vector<Tensor> expected = before.run(backend), got = after.run(backend);
    EXPECT_GT(expected[0].get(0), 0);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
  }
}

// The sum of two losses needs no more than what has come so far: it stands right behind.
TEST(TakingOver, SumsFollowWhatTheyRead) {
  Losses after;
  fuse_loss_into_backward(after.graph);
  const auto& nodes = after.graph.nodes;
  std::vector<std::string_view> ops;
  for (const Node& node : nodes) {
    const bool told = node.op->takes_over ||
                      (node.op->name == "add" && after.graph[node.outputs[0]].type.elements() == 1);
    if (!told) continue;
    ops.push_back(node.op->name);
    EXPECT_TRUE(node.backward);
  }
  const std::string_view loss = "vocabulary_loss_backward", add = "add";
  EXPECT_EQ(ops, (std::vector{loss, loss, add, add, loss, add, add}));
}

// One that its gradients read has to be there before.
TEST(TakingOver, AResultThatTheBackwardPassReadsStays) {
  Losses after(true);
  fuse_loss_into_backward(after.graph);
  EXPECT_EQ(after.count("vocabulary_loss"), 3u);
}

// In a chain of blocks a gradient belongs to the last of what it reads, be it the weight's maker or the
// input's.
TEST(TakingOver, AGradientBelongsToTheLatestOfWhatItReads) {
  for (const bool weight_last : {false, true}) {
    Graph graph;
    Builder b(graph);
    const ValueId x = b.weight("x", {{10, 6}}, {Init::Kind::normal, 1});
    const ValueId w = b.weight("w", {{9, 6}}, {Init::Kind::normal, 0.3});
    const auto scaled = [&](ValueId of) { return b.op("scale", {of}, {{"factor", 0.5}}); };
    ValueId h, weight;
    if (weight_last) {
      h = scaled(x), weight = scaled(w);
    } else {
      weight = scaled(w), h = scaled(x);
    }
    const ValueId targets = b.input("targets", {{10}, DType::i32});
    const ValueId loss = b.op("vocabulary_loss", {h, weight, targets, b.constant(0.125, {{1}})},
                              {{"label_smoothing", 0.1}, {"rows_at_once", int64_t{4}}});
    graph.results = {loss};
    const GradientRoot root = {loss, b.constant(1, {{1}})};
    const ValueId wrt[] = {x, w};
    add_gradients(graph, {&root, 1}, wrt);
    fuse_loss_into_backward(graph);
    int found = 0;
    for (const Node& node : graph.nodes) {
      if (!node.op->takes_over) continue;
      ++found;
      EXPECT_EQ(node.differentiates, graph[weight_last ? weight : h].producer);
    }
    EXPECT_EQ(found, 1);
  }
}

}  // namespace
}  // namespace thimble
