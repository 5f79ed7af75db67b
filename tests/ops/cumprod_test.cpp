// Running products and their gradient, by hand, where nothing can be divided: with zeros.
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor row(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return {{{1, count}, DType::f64}, std::move(values)};
}

TEST(Cumprod, MultipliesUpEachRow) {
  const TestTensor x = {{{2, 3}, DType::f64}, {2, 3, 4, -1, 0, 5}};
  EXPECT_EQ(reference_call("cumprod", {x})[0], (std::vector<double>{2, 6, 24, -1, 0, 0}));
}

// y = (a, ab, abc): da = d0 + b d1 + bc d2, db = a d1 + ac d2, dc = ab d2.
TEST(Cumprod, GradientOfNumbers) {
  const auto dx = reference_call("cumprod_backward", {row({2, 3, 5}), row({1, 10, 100})})[0];
  EXPECT_EQ(dx, (std::vector<double>{1 + 30 + 1500, 20 + 1000, 600}));
}

TEST(Cumprod, GradientAtOneZero) {
  const auto dx = reference_call("cumprod_backward", {row({2, 0, 5}), row({1, 10, 100})})[0];
  EXPECT_EQ(dx, (std::vector<double>{1, 20 + 1000, 0}));
}

TEST(Cumprod, GradientAtTwoZeros) {
  const auto dx = reference_call("cumprod_backward", {row({0, 3, 0}), row({1, 10, 100})})[0];
  EXPECT_EQ(dx, (std::vector<double>{1 + 30, 0, 0}));
}

}  // namespace
}  // namespace thimble
