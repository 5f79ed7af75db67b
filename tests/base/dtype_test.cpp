#include "base/number/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace thimble {
namespace {

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

Half half_from(uint32_t bits) {
  Half half;
  half.bits = static_cast<uint16_t>(bits);
  return half;
}

// The number by the format's definition, computed without any bit tricks.
double value_of_half(uint32_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits >> 10) & 0x1fu);
  const double mantissa = bits & 0x3ffu;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryPatternConvertsToItsValueAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<float>(half_from(bits));
    const double expected = value_of_half(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      continue;
    }
    ASSERT_EQ(bits_of(value), bits_of(static_cast<float>(expected))) << bits;
    ASSERT_EQ(Half(value).bits, bits);
  }
}

// Between two neighbours: below the middle goes down, above goes up, the middle to even.
TEST(Half, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const double low = value_of_half(bits);
    // The middle above the largest number rounds as if one more number followed.
    const double high = bits == 0x7bffu ? 65536.0 : value_of_half(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(Half(std::nextafter(middle, 1e9f)).bits, bits + 1);
    ASSERT_EQ(Half(middle).bits, bits + (bits & 1u));
    ASSERT_EQ(Half(-middle).bits, (bits + (bits & 1u)) | 0x8000u);
  }
}

#ifdef __FLT16_MAX__
TEST(Half, AgreesWithTheCompilersType) {
  __extension__ using Native = _Float16;
  for (uint64_t word = 0; word < (uint64_t{1} << 32); word += 9973) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(word));
    if (std::isnan(value)) continue;
    const auto native = std::bit_cast<uint16_t>(static_cast<Native>(value));
    ASSERT_EQ(Half(value).bits, native) << value;
  }
}
#endif

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(1e30f).bits, 0x7c00);
  EXPECT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
}

TEST(BFloat16, EveryPatternConvertsAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat16 small;
    small.bits = static_cast<uint16_t>(bits);
    const auto value = static_cast<float>(small);
    ASSERT_EQ(bits_of(value), bits << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(BFloat16(value))));
    } else {
      ASSERT_EQ(BFloat16(value).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  const auto rounded = [](uint32_t word) { return BFloat16(std::bit_cast<float>(word)).bits; };
  EXPECT_EQ(rounded(0x3f807fffu), 0x3f80);
  EXPECT_EQ(rounded(0x3f808000u), 0x3f80);  // the middle, to even
  EXPECT_EQ(rounded(0x3f808001u), 0x3f81);
  EXPECT_EQ(rounded(0x3f818000u), 0x3f82);  // the middle, to even
  EXPECT_EQ(rounded(0x7f7fffffu), 0x7f80);  // to infinity
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(DType, NamesRoundTrip) {
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
    with_any_type(dtype, [&](auto tag) {
      EXPECT_EQ(size_of(dtype), static_cast<int64_t>(sizeof(typename decltype(tag)::type)));
    });
  }
  EXPECT_THROW(parse_dtype("float"), UserError);
  EXPECT_THROW(parse_dtype(""), UserError);
}

TEST(DType, FloatDispatchRefusesIntegers) {
  EXPECT_THROW(with_float_type(DType::i32, [](auto) {}), InternalError);
}

}  // namespace
}  // namespace thimble
