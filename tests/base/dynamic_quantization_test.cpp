#include "base/number/dynamic_quantization.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/number/random_stream.h"

namespace thimble {
namespace {

template <class Levels>
void expect_ladder() {
  EXPECT_EQ(Levels::kLevels.front(), 0.0f);
  EXPECT_EQ(Levels::kLevels.back(), 1.0f);
  for (size_t l = 0; l < Levels::kLevels.size(); ++l) {
    ASSERT_LT(l == 0 ? -1.0f : Levels::kLevels[l - 1], Levels::kLevels[l]);
    // Every level stays itself, whatever the threshold.
    for (const float threshold : {1e-4f, 0.5f, 0.9999f}) {
      ASSERT_EQ(Levels::round(Levels::kLevels[l], threshold), static_cast<int>(l));
    }
  }
}

TEST(DynamicCode, LevelsRiseAndStandForThemselves) {
  expect_ladder<SignedCode::Levels>();
  expect_ladder<UnsignedCode::Levels>();
}

// The nearest level by looking at all of them.
template <class Levels>
int nearest_by_search(float a) {
  size_t best = 0;
  for (size_t l = 1; l < Levels::kLevels.size(); ++l) {
    if (std::abs(Levels::kLevels[l] - a) < std::abs(Levels::kLevels[best] - a)) best = l;
  }
  return static_cast<int>(best);
}

TEST(DynamicCode, RoundsToTheNearestLevel) {
  for (float a = 1; a > 1e-9f; a *= 0.9973f) {
    ASSERT_EQ(SignedCode::Levels::round(a, 0.5f), nearest_by_search<SignedCode::Levels>(a)) << a;
    ASSERT_EQ(UnsignedCode::Levels::round(a, 0.5f), nearest_by_search<UnsignedCode::Levels>(a))
        << a;
  }
}

std::vector<float> spread(int64_t count) {
  const RandomStream random(std::array<int64_t, 3>{1, 2, 3}.data(), 4);
  std::vector<float> x(static_cast<size_t>(count));
  random.uniform(0, x);
  for (float& value : x) value = std::pow(10.0f, -6 * value) * (value < 0.5f ? 3.0f : -3.0f);
  return x;
}

TEST(DynamicCode, ErrorsAreThoseOfTheDecade) {
  const std::vector<float> x = spread(kCodeBlock);
  std::array<uint8_t, kCodeBlock> codes;
  std::array<float, kCodeBlock> back;
  const float scale = encode_block<SignedCode>(x.data(), kCodeBlock, codes.data());
  decode_block<SignedCode>(codes.data(), scale, kCodeBlock, back.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const float a = std::abs(x[i]) / scale;
    // Half a cell, 0.9 / 64 wide in the upper decade; each further one has a fifth of it.
    float cell = 0.9f / 64;
    for (float decade = 0.1f; a < decade && decade > 1e-6f; decade /= 10) cell /= 5;
    // Behind the border of two decades, half of the wider cell.
    EXPECT_LE(std::abs(back[i] - x[i]), 0.5f * 1.21f * cell * scale * 2) << a;
    EXPECT_GE(back[i] * x[i], 0.0f) << "changed its sign";
    EXPECT_TRUE(a < 1 || back[i] == x[i]) << "the largest is exact";
  }
}

TEST(DynamicCode, BlocksOfNothingAreNothing) {
  const std::vector<float> zeros(10, 0.0f);
  std::vector<uint8_t> codes(10, 7);
  EXPECT_EQ(encode_block<SignedCode>(zeros.data(), 10, codes.data()), 0.0f);
  EXPECT_EQ(codes, std::vector<uint8_t>(10, 0));
}

TEST(DynamicCode, WhatIsNotFiniteStaysSo) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = {1, bad, 2};
    std::vector<uint8_t> codes(3);
    const float scale = encode_block<SignedCode>(x.data(), 3, codes.data());
    decode_block<SignedCode>(codes.data(), scale, 3, x.data());
    EXPECT_TRUE(std::isnan(x[0]) && std::isnan(x[1]));
  }
}

TEST(DynamicCode, SecondMomentsNeverVanish) {
  const std::vector<float> x = {1, 1e-20f, 0};
  std::vector<uint8_t> codes(3);
  encode_block<UnsignedCode>(x.data(), 3, codes.data());
  EXPECT_GT(UnsignedCode::decode(codes[1]), 0.0f);
  EXPECT_EQ(UnsignedCode::decode(codes[2]), 0.0f);
}

TEST(DynamicCode, StochasticRoundingIsRightOnAverage) {
  constexpr int kDraws = 4096;
  const std::vector<float> x = spread(64);
  const RandomStream random(std::array<int64_t, 3>{5, 6, 7}.data(), 8);
  std::vector<double> sum(x.size(), 0), squares(x.size(), 0);
  std::vector<uint8_t> codes(x.size());
  std::vector<float> back(x.size()), thresholds(x.size());
  for (int d = 0; d < kDraws; ++d) {
    random.uniform(d * 64, thresholds);
    const float scale = encode_block<SignedCode>(
        x.data(), 64, codes.data(), [&](int64_t i) { return thresholds[static_cast<size_t>(i)]; });
    decode_block<SignedCode>(codes.data(), scale, 64, back.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = static_cast<double>(back[i]) - static_cast<double>(x[i]);
      sum[i] += error;
      squares[i] += error * error;
    }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    // Five deviations of the mean, and the rounding of the arithmetic.
    const double slack = 5 * std::sqrt(squares[i]) / kDraws;
    EXPECT_NEAR(sum[i] / kDraws, 0, slack + 1e-6 * std::abs(static_cast<double>(x[i])));
  }
}

}  // namespace
}  // namespace thimble
