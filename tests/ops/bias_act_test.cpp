#include <cmath>

#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor tensor(Shape shape, std::vector<double> values) {
  return {{shape, DType::f64}, std::move(values)};
}
Attrs act(const char* name) { return {{"act", std::string(name)}, {"slope", 0.25}}; }

TEST(BiasAct, AppliesTheNamedFunctionAfterTheBias) {
  const std::vector<TestTensor> inputs = {tensor({1, 2}, {-3, 1}), tensor({2}, {1, 1})};
  EXPECT_EQ(reference_call("bias_act", inputs)[0], (std::vector<double>{-2, 2}));
  EXPECT_EQ(reference_call("bias_act", inputs, act("relu"))[0], (std::vector<double>{0, 2}));
  EXPECT_EQ(reference_call("bias_act", inputs, act("leaky_relu"))[0],
            (std::vector<double>{-0.5, 2}));
  expect_near(reference_call("bias_act", inputs, act("tanh"))[0], {std::tanh(-2), std::tanh(2)},
              kExact);
  expect_near(reference_call("bias_act", inputs, act("sigmoid"))[0],
              {0.5 - 0.5 * std::tanh(1), 0.5 + 0.5 * std::tanh(1)}, kExact);
}

TEST(BiasAct, ReluKeepsNotANumber) {
  const auto y =
      reference_call("bias_act", {tensor({1, 1}, {NAN}), tensor({1}, {0})}, act("relu"))[0];
  EXPECT_TRUE(std::isnan(y[0]));
}

// An output that keeps y alive until the backward pass must not exist when nothing reads it.
TEST(BiasAct, BackwardReadsTheResultOnlyWhereThereIsAnActivation) {
  const TestTensor dy = tensor({2, 2}, {1, 2, 3, 4});
  const TestTensor y = tensor({2, 2}, {1, 0, 0, 1});
  const auto none = reference_call("bias_act_backward", {dy});
  EXPECT_EQ(none[0], dy.values);
  EXPECT_EQ(none[1], (std::vector<double>{4, 6}));
  EXPECT_THROW(reference_call("bias_act_backward", {dy, y}), UserError);
  EXPECT_THROW(reference_call("bias_act_backward", {dy}, act("relu")), UserError);
  const auto relu = reference_call("bias_act_backward", {dy, y}, act("relu"));
  EXPECT_EQ(relu[0], (std::vector<double>{1, 0, 0, 4}));
  EXPECT_EQ(relu[1], (std::vector<double>{1, 4}));
}

TEST(BiasAct, RefusesUnknownActivationsAndHiddenSigns) {
  const std::vector<TensorType> types = {{{1, 2}}, {{2}}};
  const OpDef* op = find_op("bias_act");
  EXPECT_THROW(op->infer(types, act("swish")), UserError);
  EXPECT_THROW(op->infer(types, {{"act", std::string("leaky_relu")}, {"slope", -1.0}}), UserError);
}

}  // namespace
}  // namespace thimble
