#include <cmath>

#include "reference_call.h"

namespace thimble {
namespace {

TestTensor tensor(Shape shape, std::vector<double> values) {
  return {{shape, DType::f64}, std::move(values)};
}
double sigmoid(double z) { return 0.5 + 0.5 * std::tanh(z / 2); }

// One unit, one input: the formulas as they stand in the textbook.
TEST(LstmCell, FollowsTheScalarFormulas) {
  const double x = 0.7, h = -0.4, c = 1.3;
  const auto out = reference_call(
      "lstm_cell", {tensor({1, 1}, {x}), tensor({1, 1}, {h}), tensor({1, 1}, {c}),
                    tensor({4, 1}, {0.1, 0.2, 0.3, 0.4}), tensor({4, 1}, {0.5, 0.6, 0.7, 0.8}),
                    tensor({4}, {0.9, 1.0, 1.1, 1.2})});
  const double in = sigmoid(0.1 * x + 0.5 * h + 0.9);
  const double forget = sigmoid(0.2 * x + 0.6 * h + 1.0);
  const double cell = std::tanh(0.3 * x + 0.7 * h + 1.1);
  const double output = sigmoid(0.4 * x + 0.8 * h + 1.2);
  const double next = forget * c + in * cell;
  expect_near(out[0], {output * std::tanh(next)}, kExact);
  expect_near(out[1], {next}, kExact);
  expect_near(out[2], {in, forget, cell, output}, kExact);
}

// Two units told apart by their biases: gates lie side by side, [i i | f f | g g | o o].
TEST(LstmCell, GatesOfAllUnitsLieTogether) {
  const auto out = reference_call(
      "lstm_cell",
      {tensor({1, 1}, {0}), tensor({1, 2}, {0, 0}), tensor({1, 2}, {0, 0}),
       tensor({8, 1}, std::vector<double>(8, 0.0)), tensor({8, 2}, std::vector<double>(16, 0.0)),
       tensor({8}, {1, 2, 3, 4, 5, 6, 7, 8})});
  expect_near(out[2],
              {sigmoid(1), sigmoid(2), sigmoid(3), sigmoid(4), std::tanh(5), std::tanh(6),
               sigmoid(7), sigmoid(8)},
              kExact);
}

TEST(LstmCell, GradientOfTheInputExistsOnlyWhenAskedFor) {
  const Shape state = {2, 3};
  const std::vector<TensorType> types = {{{2, 5}},  {state}, {state}, {{12, 5}}, {{12, 3}},
                                         {{2, 12}}, {state}, {state}, {state}};
  const OpDef* op = find_op("lstm_cell_backward");
  EXPECT_EQ(op->infer(types, {{"needs_dx", int64_t{0}}}).size(), 5u);
  const auto all = op->infer(types, {{"needs_dx", int64_t{1}}});
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[5], types[0]);
  EXPECT_EQ(all[4], (TensorType{{12}}));
}

}  // namespace
}  // namespace thimble
