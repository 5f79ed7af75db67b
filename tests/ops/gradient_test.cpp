// Every op's gradient against central finite differences, in double, of a random projection of its
// outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/autodiff.h"
#include "base/error.h"
#include "graph/builder.h"
#include "support/interpreter.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

// The step balances the error of the difference formula, h^2, against rounding, 1e-16 / h.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;

// The function under test and its gradient as two graphs over the same leading values.
struct Function {
  Graph forward, backward;
  std::vector<ValueId> inputs, projections, outputs;
  std::vector<ValueId> gradients;  // by entry of sample.differentiate
  std::vector<Tensor> contents;    // of inputs, then of projections
};

// Whether the gradient reads a value or passes it through.
bool uses(const Function& f, ValueId value) {
  const auto has = [&](const std::vector<ValueId>& list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return has(f.gradients) ||
         std::any_of(f.backward.nodes.begin(), f.backward.nodes.end(),
                     [&](const Node& n) { return n.backward && has(n.inputs); });
}

// Extras that an op saves for its gradient (a mean, gates) are outputs, but no result to
// differentiate: the gradient reads them and ignores what arrives at them. An output that is
// neither read nor differentiated is a gradient that was forgotten.
void drop_saved_outputs(Function& f) {
  for (size_t k = f.outputs.size(); k-- > 0;) {
    if (uses(f, f.projections[k])) continue;
    EXPECT_TRUE(k > 0 && uses(f, f.outputs[k])) << "the gradient forgets output " << k;
    f.outputs.erase(f.outputs.begin() + static_cast<std::ptrdiff_t>(k));
    f.projections.erase(f.projections.begin() + static_cast<std::ptrdiff_t>(k));
    f.contents.erase(f.contents.begin() + static_cast<std::ptrdiff_t>(f.inputs.size() + k));
  }
}

Function build_function(const OpDef& op, const Sample& sample) {
  Function f;
  Builder build(f.forward);
  std::vector<TensorType> types = sample.inputs;
  if (sample.build == nullptr) {
    types = switched_types(op, sample, DType::f64);
  } else {
    for (TensorType& type : types) {
      if (is_floating(type.dtype)) type.dtype = DType::f64;
    }
  }
  for (size_t i = 0; i < types.size(); ++i) {
    f.inputs.push_back(build.input(fmt::format("x{}", i), types[i]));
    Tensor& content = f.contents.emplace_back(types[i]);
    fill_tensor(content, i < sample.fills.size() ? sample.fills[i] : Fill{}, 100 + i);
  }
  const std::vector<ValueId> made = sample.build != nullptr
                                        ? std::vector{sample.build(build, f.inputs)}
                                        : build.apply(op.name, f.inputs, sample.attrs);
  std::vector<GradientRoot> roots;
  for (const ValueId output : made) {
    if (!is_floating(build.type(output).dtype)) continue;
    f.outputs.push_back(output);
    f.projections.push_back(build.input(fmt::format("r{}", output.index), build.type(output)));
    fill_tensor(f.contents.emplace_back(build.type(output)), {}, 300 + output.at());
    roots.push_back({output, f.projections.back()});
  }
  f.backward = f.forward;
  std::vector<ValueId> wrt;
  for (const int i : sample.differentiate) wrt.push_back(f.inputs[static_cast<size_t>(i)]);
  f.gradients = add_gradients(f.backward, roots, wrt);
  verify_graph(f.backward);
  drop_saved_outputs(f);
  return f;
}

void set_inputs(Interpreter& run, const Function& f) {
  for (size_t i = 0; i < f.inputs.size(); ++i) run[f.inputs[i]] = Tensor(f.contents[i]);
  for (size_t k = 0; k < f.projections.size(); ++k) {
    run[f.projections[k]] = Tensor(f.contents[f.inputs.size() + k]);
  }
}

// The projection of the outputs where one input is moved by step * direction.
double evaluate(const Function& f, size_t input, const Tensor& direction, double step) {
  Interpreter run(f.forward);
  set_inputs(run, f);
  Tensor& moved = run[f.inputs[input]];
  for (int64_t i = 0; i < moved.elements(); ++i) {
    moved.set(i, moved.get(i) + step * direction.get(i));
  }
  run.run();
  double sum = 0;
  for (size_t k = 0; k < f.outputs.size(); ++k) {
    const Tensor &y = run[f.outputs[k]], &r = run[f.projections[k]];
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.get(i) * r.get(i);
  }
  return sum;
}

void check_direction(const Function& f, size_t input, const Tensor& gradient,
                     const Tensor& direction, const std::string& what) {
  double analytic = 0, magnitude = 0;
  for (int64_t i = 0; i < gradient.elements(); ++i) {
    analytic += gradient.get(i) * direction.get(i);
    magnitude += std::abs(gradient.get(i) * direction.get(i));
  }
  const double numeric =
      (evaluate(f, input, direction, kStep) - evaluate(f, input, direction, -kStep)) / (2 * kStep);
  EXPECT_NEAR(analytic, numeric, kTolerance * (1 + magnitude)) << "input " << input << ", " << what;
}

// A few random directions cover all elements at once, single elements say where it goes wrong.
void check_sample(const OpDef& op, const Sample& sample) {
  const Function f = build_function(op, sample);
  Interpreter backward(f.backward);
  set_inputs(backward, f);
  backward.run();
  for (size_t d = 0; d < sample.differentiate.size(); ++d) {
    const auto input = static_cast<size_t>(sample.differentiate[d]);
    ASSERT_TRUE(f.gradients[d].valid()) << "no gradient for input " << input;
    const Tensor& gradient = backward[f.gradients[d]];
    Tensor direction(gradient.type());
    for (const uint64_t seed : {1, 2}) {
      fill_tensor(direction, {}, seed);
      check_direction(f, input, gradient, direction, "a random direction");
    }
    const int64_t stride = std::max<int64_t>(1, gradient.elements() / 7);
    for (int64_t element = 0; element < gradient.elements(); element += stride) {
      fill_tensor(direction, {Fill::Kind::zeros}, 0);
      direction.set(element, 1);
      check_direction(f, input, gradient, direction, fmt::format("element {}", element));
    }
  }
}

class Gradient : public testing::TestWithParam<const OpDef*> {};

TEST_P(Gradient, MatchesFiniteDifferences) {
  for (const Sample& sample : GetParam()->samples()) {
    if (sample.differentiate.empty()) continue;
    SCOPED_TRACE(describe(*GetParam(), sample));
    check_sample(*GetParam(), sample);
  }
}

TEST_P(Gradient, EveryDifferentiableOpIsChecked) {
  const std::vector<Sample> samples = GetParam()->samples();
  const bool checked = std::any_of(samples.begin(), samples.end(),
                                   [](const Sample& s) { return !s.differentiate.empty(); });
  const bool built = std::any_of(samples.begin(), samples.end(),
                                 [](const Sample& s) { return s.build != nullptr; });
  EXPECT_EQ(checked, GetParam()->gradient != nullptr || built);
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(ops_under_test()), OpName());

}  // namespace
}  // namespace thimble
