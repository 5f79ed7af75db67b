#include "base/number/stochastic_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/number/philox.h"

namespace thimble {
namespace {

constexpr int kDraws = 40'000;

template <class T>
class StochasticRounding : public testing::Test {
 protected:
  // Mean and the two results of many roundings.
  struct Drawn {
    double mean = 0, low = INFINITY, high = -INFINITY;
  };
  static Drawn draw(float value) {
    Drawn drawn;
    for (uint32_t i = 0; i < kDraws / 4; ++i) {
      for (const uint32_t word : philox({i, 0, 0, 0}, philox_key(7))) {
        const auto rounded = static_cast<double>(round_stochastically(value, word, TypeTag<T>{}));
        drawn.mean += rounded / kDraws;
        drawn.low = std::min(drawn.low, rounded);
        drawn.high = std::max(drawn.high, rounded);
      }
    }
    return drawn;
  }
};

using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(StochasticRounding, Types);

// A rounding to one of two neighbours, a step apart, deviates by half a step at most; the mean of n
// by step / (2 sqrt n). Five of these are exceeded once in two million.
TYPED_TEST(StochasticRounding, IsRightOnAverage) {
  for (const float value :
       {1.0004f, -1.003f, 0.1f, 3.14159f, -1234.567f, 6.2e-5f, 3.3e-6f, -1e-7f}) {
    SCOPED_TRACE(value);
    const auto drawn = this->draw(value);
    const double step = drawn.high - drawn.low;
    EXPECT_LT(drawn.low, static_cast<double>(value));
    EXPECT_GT(drawn.high, static_cast<double>(value));
    EXPECT_NEAR(drawn.mean, static_cast<double>(value), 5 * step / (2 * std::sqrt(kDraws)));
    // The neighbours: nothing lies between them.
    const auto middle = static_cast<double>(static_cast<TypeParam>((drawn.low + drawn.high) / 2));
    EXPECT_TRUE(middle == drawn.low || middle == drawn.high);
  }
}

TYPED_TEST(StochasticRounding, LeavesExactNumbersAlone) {
  for (const float value : {0.0f, 1.0f, -0.5f, 3.0f, 0x1p-14f, 0x1p-24f, -0x1.8p-20f, 240.0f}) {
    const auto drawn = this->draw(value);
    EXPECT_EQ(drawn.low, static_cast<double>(value));
    EXPECT_EQ(drawn.high, static_cast<double>(value));
  }
}

TYPED_TEST(StochasticRounding, RoundsWhatIsTooLargeToNearest) {
  const float largest = std::numeric_limits<float>::max(), infinity = INFINITY;
  for (const float value : {largest, infinity, -infinity, std::nanf("")}) {
    const auto rounded = round_stochastically(value, 0xffffffffu, TypeTag<TypeParam>{});
    EXPECT_EQ(rounded.bits, TypeParam(value).bits);
  }
  EXPECT_EQ(round_stochastically(65504.0f, 0xffffffffu, TypeTag<Half>{}).bits, Half(65504.0f).bits);
}

}  // namespace
}  // namespace thimble
