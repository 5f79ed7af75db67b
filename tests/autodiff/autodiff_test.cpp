// Properties of whole gradients; each op's own gradient is checked in tests/ops.
#include "autodiff/autodiff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/builder.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

const TensorType kType = {{4, 6}, DType::f64};

// Checks add_gradients of `root` against finite differences at a few elements of each of `wrt`.
void check_gradients(const Graph& forward, ValueId root, const std::vector<ValueId>& wrt) {
  Graph graph = forward;
  const ValueId upstream = Builder(graph).input("upstream", graph[root].type);
  const GradientRoot roots[] = {{root, upstream}};
  const std::vector<ValueId> gradients = add_gradients(graph, roots, wrt);
  verify_graph(graph);
  const auto prepare = [&](Interpreter& run) {
    for (size_t v = 0; v < forward.values.size(); ++v) {
      if (!forward.values[v].producer.valid()) {
        fill_tensor(run[make_id<ValueId>(v)], {}, 1 + v);
      }
    }
  };
  Tensor projection(graph[root].type);
  fill_tensor(projection, {}, 77);
  Interpreter backward(graph);
  prepare(backward);
  backward[upstream] = projection;
  backward.run();
  for (size_t i = 0; i < wrt.size(); ++i) {
    ASSERT_TRUE(gradients[i].valid());
    for (const int64_t element : {int64_t{0}, graph[wrt[i]].type.elements() - 1}) {
      const auto moved = [&](double step) {
        Interpreter run(forward);
        prepare(run);
        run[wrt[i]].set(element, run[wrt[i]].get(element) + step);
        run.run();
        double sum = 0;
        for (int64_t e = 0; e < projection.elements(); ++e) {
          sum += run[root].get(e) * projection.get(e);
        }
        return sum;
      };
      const double numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
      EXPECT_NEAR(backward[gradients[i]].get(element), numeric, 1e-6 * (1 + std::abs(numeric)));
    }
  }
}

TEST(Autodiff, ValueUsedManyTimes) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId a = build.op("tanh", {x});
  const ValueId b = build.op("mul", {a, x});
  const ValueId c = build.op("add", {b, a});
  const ValueId d = build.op("sub", {c, x});
  check_gradients(graph, build.op("mul", {d, d}), {x});
}

TEST(Autodiff, PassThroughGradientsAreNotOverwritten) {
  // add gives one gradient to both of its inputs; both collect more contributions.
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId a = build.op("sigmoid", {x});
  const ValueId b = build.op("tanh", {x});
  const ValueId more = build.op("mul", {a, b});
  const ValueId sum = build.op("add", {a, b});
  check_gradients(graph, build.op("add", {sum, more}), {x});
}

// add gives one gradient to both of its inputs, and the first of them has another reader: its sum
// must not grow in the bytes of what the second has yet to receive.
TEST(Autodiff, GradientGivenTwiceIsNotAddedIntoBeforeBothHaveIt) {
  for (const bool swapped : {false, true}) {
    Graph graph;
    Builder build(graph);
    const ValueId x = build.input("x", kType);
    const ValueId y = build.input("y", kType);
    const ValueId a = build.op("sigmoid", {x});
    const ValueId b = build.op("tanh", {y});
    const ValueId sum = swapped ? build.op("add", {b, a}) : build.op("add", {a, b});
    const ValueId joined = build.op("concat", {a, build.op("tanh", {sum})}, {{"axis", int64_t{1}}});
    check_gradients(graph, build.op("mul", {joined, joined}), {x, y});
  }
}

// The gradient of a value in the middle is the caller's: what flows on from it must not grow there.
TEST(Autodiff, GradientOfAValueInTheMiddleStaysWhatItIs) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId y = build.input("y", kType);
  const ValueId a = build.op("add", {x, y});
  const ValueId b = build.op("mul", {x, build.op("tanh", {a})});
  const ValueId root = build.op("add", {b, a});
  Graph step = graph;
  const GradientRoot roots[] = {{root, Builder(step).input("upstream", kType)}};
  const ValueId wrt[] = {a, x, y};
  const std::vector<ValueId> gradients = add_gradients(step, roots, wrt);
  // y is read by the sum alone: its gradient is that of the sum.
  Interpreter run(step);
  for (size_t v = 0; v < step.values.size(); ++v) {
    if (!step.values[v].producer.valid()) fill_tensor(run[make_id<ValueId>(v)], {}, 1 + v);
  }
  run.run();
  const auto newer = previous_versions(step);
  EXPECT_EQ(std::ranges::count(newer, gradients[0]), 0) << print_graph(step);
  for (int64_t e = 0; e < run[gradients[0]].elements(); ++e) {
    EXPECT_EQ(run[gradients[0]].get(e), run[gradients[2]].get(e));
  }
}

TEST(Autodiff, ThroughViewsAndBroadcasts) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId bias = build.input("bias", {{6}, DType::f64});
  const ValueId y = build.op("tanh", {build.op("add", {x, bias})});
  const ValueId flat = build.op("reshape", {y}, {{"shape", std::vector<int64_t>{24}}});
  const ValueId back = build.op("reshape", {flat}, {{"shape", std::vector<int64_t>{4, 6}}});
  check_gradients(graph, build.op("mul", {back, build.op("add", {y, x})}), {x, bias});
}

// A sum must not be added into while a view of it is still to be read: they share bytes.
TEST(Autodiff, NothingIsAddedIntoUnderALiveView) {
  Graph graph;
  Builder build(graph);
  const ValueId p = build.input("p", kType);
  const ValueId flat = build.input("flat", {{24}, DType::f64});
  const ValueId q = build.op("tanh", {flat});
  const ValueId s = build.op("sigmoid", {p});
  const ValueId z = build.op("relu", {s});
  const ValueId r = build.op("reshape", {q}, {{"shape", std::vector<int64_t>{4, 6}}});
  const ValueId y = build.op("scale", {build.op("add", {s, r})}, {{"factor", 2.0}});
  const ValueId out = build.op("add", {build.op("scale", {z}, {{"factor", 3.0}}), y});
  check_gradients(graph, out, {p, flat});

  const GradientRoot roots[] = {{out, build.input("upstream", kType)}};
  const ValueId wrt[] = {p, flat};
  add_gradients(graph, roots, wrt);
  const auto readers = readers_of(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId target : graph.nodes[n].accumulate) {
      if (!target.valid()) continue;
      for (const NodeId reader : readers[target.at()]) {
        if (!graph[reader].op->view) continue;
        for (const NodeId later : readers[graph[reader].outputs[0].at()]) {
          EXPECT_LT(later.at(), n) << "a view is read after its bytes were added into\n"
                                   << print_graph(graph);
        }
      }
    }
  }
}

TEST(Autodiff, SumsOfContributionsNeedNoTemporary) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId a = build.op("scale", {x}, {{"factor", 2.0}});
  const ValueId b = build.op("scale", {x}, {{"factor", 3.0}});
  const ValueId y = build.op("mul", {a, b});
  const GradientRoot roots[] = {{y, build.input("upstream", kType)}};
  add_gradients(graph, roots, std::vector{x});
  EXPECT_TRUE(std::none_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) {
    return n.op->name == "add";
  })) << print_graph(graph);
}

TEST(Autodiff, NoGradientWithoutDependence) {
  Graph graph;
  Builder build(graph);
  const ValueId x = build.input("x", kType);
  const ValueId other = build.input("other", kType);
  const ValueId y = build.op("relu", {x});
  const GradientRoot roots[] = {{y, build.input("upstream", kType)}};
  const auto gradients = add_gradients(graph, roots, std::vector{x, other});
  EXPECT_TRUE(gradients[0].valid());
  EXPECT_FALSE(gradients[1].valid());
}

}  // namespace
}  // namespace thimble
