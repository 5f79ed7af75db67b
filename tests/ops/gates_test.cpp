#include <cmath>
#include <numbers>

#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor row(std::vector<double> values) {
  const int64_t count = std::ssize(values);
  return {{{count}, DType::f64}, std::move(values)};
}

// Shares of normal numbers below 1, 0 and -2, from a table.
TEST(Gelu, IsXTimesTheShareOfNormalNumbersBelowIt) {
  const auto y = reference_call("gelu", {row({1, 0, -2})})[0];
  expect_near(y, {0.8413447460685429, 0, -2 * 0.02275013194817921}, kExact);
}

TEST(Gelu, ApproximatesByTanh) {
  const Attrs tanh = {{"approximate", std::string("tanh")}};
  const double inner = std::sqrt(2 / std::numbers::pi) * 1.044715;
  expect_near(reference_call("gelu", {row({1})}, tanh)[0], {(1 + std::tanh(inner)) / 2}, kExact);
  EXPECT_THROW(reference_call("gelu", {row({1})}, {{"approximate", std::string("erf")}}),
               UserError);
}

TEST(Silu, IsXTimesItsSigmoid) {
  expect_near(reference_call("silu", {row({2, 0})})[0], {2 / (1 + std::exp(-2)), 0}, kExact);
}

TEST(Glu, GatesTheFirstHalfByTheSecond) {
  const double half = std::log(3);  // sigmoid 3/4
  const TestTensor x = {{{2, 4}, DType::f64}, {8, 4, half, 0, 1, 2, 0, half}};
  expect_near(reference_call("glu", {x})[0], {6, 2, 0.5, 1.5}, kExact);
  const TestTensor dy = {{{2, 2}, DType::f64}, {1, 1, 0, 4}};
  // da = dy sigmoid(b), db = dy a sigmoid(b) (1 - sigmoid(b))
  expect_near(reference_call("glu_backward", {x, dy})[0],
              {0.75, 0.5, 8 * 0.1875, 4 * 0.25, 0, 3, 0, 4 * 2 * 0.1875}, kExact);
  EXPECT_THROW(reference_call("glu", {row({1, 2, 3})}), UserError);
}

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  const TestTensor x = {{{2, 2}, DType::f64}, {1, 7, -3, 3}}, gamma = row({1, 2});
  const auto out = reference_call("rms_norm", {x, gamma}, {{"epsilon", 0.0}});
  expect_near(out[0], {0.2, 2.8, -1, 2}, kExact);
  expect_near(out[1], {0.2, 1.0 / 3}, kExact);
}

}  // namespace
}  // namespace thimble
