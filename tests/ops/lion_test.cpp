#include <cmath>

#include "reference_call.h"

namespace thimble {
namespace {

TestTensor vector_of(std::vector<double> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  return {{{count}, DType::f64}, std::move(values)};
}
TestTensor scalar(double value) { return {{{1}, DType::f32}, {value}}; }
constexpr double kRate = 0.125;  // exact in f32

// m = 1, g = -4, beta1 0.9, beta2 0.99: c = 0.9 - 0.4 points up where m' = 0.99 - 0.04; with
// g = -10 c points down although m' still points up. Nothing moves where c is 0.
TEST(Lion, StepsAlongTheSignOfAMomentumThatLooksAhead) {
  const auto out = reference_call(
      "update",
      {vector_of({2, 2, 2}), vector_of({-4, -10, 0}), vector_of({1, 1, 0}), scalar(kRate)},
      {{"rule", "lion"}});
  expect_near(out[0], {2 - kRate, 2 + kRate, 2}, kExact);
  expect_near(out[1], {0.99 - 0.04, 0.99 - 0.1, 0}, kExact);
}

TEST(Lion, DecaysWeightsApartFromTheMomentum) {
  const auto out =
      reference_call("update", {vector_of({4}), vector_of({1}), vector_of({0}), scalar(kRate)},
                     {{"rule", "lion"}, {"weight_decay", 0.5}, {"beta2", 0.75}});
  expect_near(out[0], {4 - kRate * (1 + 0.5 * 4)}, kExact);
  expect_near(out[1], {0.25}, kExact);
}

// A sign would hide it: a diverged run must not look healthy.
TEST(Lion, PassesOnWhatIsNoNumber) {
  const auto out = reference_call(
      "update", {vector_of({4}), vector_of({std::nan("")}), vector_of({0}), scalar(kRate)},
      {{"rule", "lion"}});
  EXPECT_TRUE(std::isnan(out[0][0]));
}

// A step moves it by a quarter of the distance of two levels: rounded to the nearest it would stand
// still, on average it moves.
TEST(Lion, InEightBitsMovesItsMomentumByTheRightAmountOnAverage) {
  const int64_t count = 256 * 80;
  std::vector<double> momentum(count, 100.0);  // 0.1 + 0.9 * 37.5 / 64 of the scale
  for (int64_t i = 0; i < count; i += 256) momentum[static_cast<size_t>(i)] = 127;  // all of it
  const std::vector<double> zeros(count, 0.0), gradient(count, 1.0), scales(count / 256, 1.0);
  const auto out = reference_call("update_8bit",
                                  {{{{count}, DType::f32}, zeros},
                                   {{{count}, DType::f32}, gradient},
                                   {{{count}, DType::u8}, momentum},
                                   {{{count / 256}, DType::f32}, scales},
                                   scalar(kRate),
                                   scalar(3)},
                                  {{"rule", "lion"}, {"stream", int64_t{5}}});
  double codes = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i % 256 != 0) codes += out[1][static_cast<size_t>(i)];
  }
  const double moved = codes / static_cast<double>(count - count / 256) - 100;
  const double level = 0.1 + 0.9 * 37.5 / 64, distance = 0.9 / 64;
  EXPECT_NEAR(moved, 0.01 * (1 - level) / distance, 0.016);  // five deviations
}

}  // namespace
}  // namespace thimble
