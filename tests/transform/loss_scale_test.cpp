// A scaled loss: what updates make of it, by hand.
#include "transform/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/autodiff.h"
#include "graph/builder.h"
#include "graph/order.h"
#include "support/interpreter.h"
#include "transform/optimizer.h"

namespace thimble {
namespace {

// The loss is the sum of x w over all pairs, so that x is the gradient of w.
struct LinearStep {
  Graph graph;
  std::vector<ValueId> weights, inputs;
  OptimizerInputs scalars;

  LinearStep(int count, Shape shape, const OptimizerSpec& spec) {
    Builder b(graph);
    ValueId loss;
    for (int i = 0; i < count; ++i) {
      inputs.push_back(b.input(fmt::format("x{}", i), {shape}));
      weights.push_back(b.weight(fmt::format("w{}", i), {shape}, {Init::Kind::constant, 1}));
      const ValueId product = b.op("mul", {inputs[static_cast<size_t>(i)], weights.back()});
      const ValueId sum =
          b.op("reshape", {b.op("reduce", {product}, {{"axes", std::vector<int64_t>{0}}})},
               {{"shape", std::vector<int64_t>{1}}});
      loss = loss.valid() ? b.op("add", {loss, sum}) : sum;
    }
    graph.results = {loss};
    const ValueId scale = add_loss_scale(graph, spec.scaling);
    const GradientRoot root = {loss, scale.valid() ? scale : b.constant(1, {{1}})};
    const std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, weights);
    scalars = add_updates(graph, weights, gradients, spec, false, scale);
    sort_by_phase(graph);
    verify_graph(graph);
  }
};

void fill(Tensor& tensor, double value) {
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, value);
}

// The momentum is scaled with the gradients, and so is the pull of weight decay on it. All numbers are
// sums of a few powers of two: f32 holds them as they are.
TEST(LossScale, AFixedOneScalesTheDecayOfAFoldedMomentum) {
  for (const double start : {1.0, 8.0}) {
    for (const bool folds : {false, true}) {
      SCOPED_TRACE(fmt::format("a scale of {}{}", start, folds ? ", folded" : ""));
      OptimizerSpec spec = parse_optimizer("sgd");
      spec.momentum = 0.5, spec.weight_decay = 0.25, spec.fold = folds;
      spec.scaling = {.kind = LossScaling::Kind::fixed, .start = start};
      LinearStep step(1, {4}, spec);
      Interpreter run(step.graph);
      fill(run[step.scalars.learning_rate], 0.125);
      double w = 1, m = 0;
      for (const double x : {2.0, -4.0, 1.0}) {
        fill(run[step.inputs[0]], x);
        run.run();
        run.commit();
        m = 0.5 * m + x + 0.25 * w;
        w -= 0.125 * m;
        for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(run[step.weights[0]].get(i), w);
      }
    }
  }
}

// Gradients are counted some at a time: one that is not finite skips the step wherever it is.
TEST(LossScale, OneNumberThatIsNotFiniteSkipsAStepOfManyWeights) {
  constexpr int kWeights = 70;
  OptimizerSpec spec = parse_optimizer("sgd");
  spec.momentum = 0;
  spec.scaling = {.kind = LossScaling::Kind::dynamic};
  const LinearStep step(kWeights, {3}, spec);
  for (int at = -1; at < kWeights; ++at) {
    SCOPED_TRACE(at);
    Interpreter run(step.graph);
    fill(run[step.scalars.learning_rate], 0.5);
    fill(run[step.scalars.loss_scale], 4);
    for (const ValueId input : step.inputs) fill(run[input], 1);
    const double wrong = at % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                     : -std::numeric_limits<double>::infinity();
    if (at >= 0) run[step.inputs[static_cast<size_t>(at)]].set(at % 3, wrong);
    run.run();
    EXPECT_EQ(run[step.scalars.overflow].get(0), at < 0 ? 0 : 1);
    run.commit();
    for (const ValueId weight : step.weights) {
      for (int64_t i = 0; i < 3; ++i) ASSERT_EQ(run[weight].get(i), at < 0 ? 0.5 : 1);
    }
  }
}

}  // namespace
}  // namespace thimble
