// embed, take_rows, sinusoid and where on numbers that can be worked out by hand.
#include <cmath>

#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor f64(Shape shape, std::vector<double> values) {
  return {{shape, DType::f64}, std::move(values)};
}
TestTensor i32(Shape shape, std::vector<double> values) {
  return {{shape, DType::i32}, std::move(values)};
}

TEST(Embed, LooksUpScalesAndPads) {
  const TestTensor table = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto y = reference_call("embed", {table, i32({2, 2}, {2, 0, 1, 2})},
                                {{"pad", int64_t{1}}, {"scale", 10.0}});
  EXPECT_EQ(y[0], (std::vector<double>{50, 60, 10, 20, 0, 0, 50, 60}));
}

TEST(Embed, ATokenThatIsNoRowIsPadding) {
  const TestTensor table = f64({2, 1}, {1, 2});
  EXPECT_EQ(reference_call("embed", {table, i32({3}, {-1, 2, 1})})[0],
            (std::vector<double>{0, 0, 2}));
}

TEST(Embed, TheGradientAddsUpWhatArrivesAtAToken) {
  const auto d = reference_call(
      "embed_backward", {i32({5}, {2, 0, 2, 1, -1}), f64({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
      {{"rows", int64_t{4}}, {"pad", int64_t{1}}, {"scale", 0.5}});
  EXPECT_EQ(d[0], (std::vector<double>{1.5, 2, 0, 0, 3, 4, 0, 0}));
}

TEST(TakeRows, InAnyOrderAndMoreThanOnce) {
  const TestTensor x = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(reference_call("take_rows", {x, i32({4}, {2, 2, -1, 0})})[0],
            (std::vector<double>{5, 6, 5, 6, 0, 0, 1, 2}));
}

// fairseq's table: row p is sin and cos of p * 10000^(-i / (C/2 - 1)).
TEST(Sinusoid, IsFairseqsTable) {
  const auto y = reference_call(
      "sinusoid", {i32({2, 3}, {5, 6, 1, 7, 1, 1})},
      {{"width", int64_t{6}}, {"pad", int64_t{1}}, {"dtype", std::string("f64")}})[0];
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t t = 0; t < 3; ++t) {
      const bool padding = n == 0 ? t == 2 : t > 0;
      const double position = static_cast<double>(t + 2);  // behind the padding's own, 1
      for (int64_t c = 0; c < 6; ++c) {
        const double angle = position * std::pow(10000.0, -static_cast<double>(c % 3) / 2);
        const double wanted = padding ? 0 : c < 3 ? std::sin(angle) : std::cos(angle);
        EXPECT_NEAR(y[static_cast<size_t>((n * 3 + t) * 6 + c)], wanted, kExact);
      }
    }
  }
}

TEST(Where, OneOfTwoOrNothing) {
  const TestTensor mask = i32({2}, {1, 0}), a = f64({2, 2}, {1, 2, 3, 4}),
                   b = f64({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(reference_call("where", {mask, a, b})[0], (std::vector<double>{1, 2, 7, 8}));
  EXPECT_EQ(reference_call("where", {mask, a})[0], (std::vector<double>{1, 2, 0, 0}));
  EXPECT_EQ(reference_call("where", {mask, a, b}, {{"negate", int64_t{1}}})[0],
            (std::vector<double>{5, 6, 3, 4}));
}

TEST(Where, TheMaskHasTheFirstAxes) {
  EXPECT_THROW(reference_call("where", {i32({2}, {1, 0}), f64({3, 2}, {1, 2, 3, 4, 5, 6})}),
               UserError);
}

}  // namespace
}  // namespace thimble
