// Codes without branches and divisions beside those of dynamic_quantization.h, to the bit.
#include "base/number/branchless_code.h"

#include <gtest/gtest.h>

#include "base/number/philox.h"

namespace thimble {
namespace {

// As a device has it; the compiler of this file fuses nothing by itself.
struct Plain {
  static float add(float a, float b) { return a + b; }
  static float sub(float a, float b) { return a - b; }
  static float mul(float a, float b) { return a * b; }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float floor(float a) { return std::floor(a); }
  static uint32_t whole(float a) { return static_cast<uint32_t>(a); }
};

constexpr CodeTables<64> kNarrow = CodeTables<64>::make();
constexpr CodeTables<128> kUnsigned = CodeTables<128>::make();
template <int kCells>
NearestTables<kCells> nearest() {
  NearestTables<kCells> tables = NearestTables<kCells>::make();
  const std::array<float, 2 * kCells> least = least_of_levels<kCells>();
  for (int level = 0; level < 2 * kCells; ++level) {
    tables.levels[level] = level_of_least<kCells>(least.data(), level);
  }
  return tables;
}
BlockScale of(float scale) {
  return block_scale(scale, [](float x) { return 1 / x; });
}

// The divisors that are known beforehand, with every mantissa: exponents move nothing.
TEST(BranchlessCode, KnownDivisorsRoundAsADivisionDoes) {
  for (const float b : {0.9F, 0.6F, 0.5F, 3.0F, 1.0F, 0.1F + 0.5F * (0.9F / 2)}) {
    for (uint32_t mantissa = 0; mantissa < 1u << 23; ++mantissa) {
      const auto a = std::bit_cast<float>(0x3e000000u | mantissa);
      ASSERT_EQ(divided_by_known<Plain>(a, b, 1 / b), a / b) << a << " / " << b;
      ASSERT_EQ(divided_by_known<Plain>(-a, b, 1 / b), -a / b);
    }
  }
}

// Every number of [0, 1] that is not tiny: all levels and what lies between them.
template <int kCells>
void check_levels(const CodeTables<kCells>& tables, float threshold, uint32_t step) {
  for (uint32_t bits = 0x31000000; bits <= 0x3f800000; bits += step) {
    const auto a = std::bit_cast<float>(bits);
    ASSERT_EQ(static_cast<int>(level_of<Plain>(a, threshold, tables)),
              DynamicLevels<kCells>::round(a, threshold))
        << a << " at " << threshold;
  }
}
TEST(BranchlessCode, LevelsAreTheSame) {
  check_levels(kNarrow, 0.5F, 5);
  check_levels(kUnsigned, 0.5F, 5);
  for (uint32_t t = 0; t < 40; ++t) {
    const float threshold = uniform_from(philox({t}, philox_key(3))[0]);
    check_levels(kNarrow, threshold, 499);
    check_levels(kUnsigned, threshold, 499);
  }
}

template <int kCells>
void check_nearest() {
  const NearestTables<kCells> tables = nearest<kCells>();
  for (uint32_t bits = 0; bits <= 0x3f800000; bits += 7) {
    const auto a = std::bit_cast<float>(bits);
    ASSERT_EQ(static_cast<int>(nearest_level<Plain>(a, tables)),
              DynamicLevels<kCells>::round(a, 0.5F))
        << a;
  }
}
TEST(BranchlessCode, NearestLevelsAreTheSame) {
  check_nearest<64>();
  check_nearest<128>();
}

// Numbers and scales of all sizes that a state has, subnormal ones among them.
TEST(BranchlessCode, CodesAreTheSame) {
  const NearestTables<64> to_nearest = nearest<64>();
  for (uint32_t i = 0; i < 3000000; ++i) {
    const PhiloxCounter words = philox({i}, philox_key(11));
    const float sizes[] = {1, 1e-6F, 1e-20F, 1e-30F, 1e-37F, 1e-41F, 1e20F, 1e37F};
    const float scale = sizes[i % 8] * (0.5F + uniform_from(words[0]));
    const float share = std::pow(uniform_from(words[1]), 1.0F + static_cast<float>(i % 9));
    const float x = i % 1001 == 0 ? scale : i % 1003 == 0 ? 0 : std::min(scale, scale * share);
    const float threshold = uniform_from(words[2]), sign = (words[3] & 1u) != 0 ? -1.0F : 1.0F;
    ASSERT_EQ(signed_code<Plain>(sign * x, of(scale), to_nearest),
              SignedCode::encode(sign * x, scale, 0.5F))
        << sign * x << " of " << scale;
    ASSERT_EQ(unsigned_code<Plain>(x, of(scale), threshold, kUnsigned),
              UnsignedCode::encode(x, scale, threshold))
        << x << " of " << scale << " at " << threshold;
  }
}

}  // namespace
}  // namespace thimble
