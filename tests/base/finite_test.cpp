#include "base/number/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace thimble {
namespace {

template <class T>
bool finite(const std::vector<T>& values, DType dtype) {
  return all_finite(std::as_bytes(std::span(values)), dtype);
}

template <class T>
void expect_every_pattern(DType dtype) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    T value;
    value.bits = static_cast<uint16_t>(bits);
    const bool expected = std::isfinite(static_cast<float>(value));
    for (size_t at = 0; at < 5; ++at) {  // each place of a word, and beyond the last word
      std::vector<T> values(5, T(-1.0f));
      values[at] = value;
      ASSERT_EQ(finite(values, dtype), expected) << std::hex << bits << " at " << at;
    }
  }
}

TEST(AllFinite, EveryNumberOf16Bits) {
  expect_every_pattern<Half>(DType::f16);
  expect_every_pattern<BFloat16>(DType::bf16);
}

template <class T>
void expect_ends_of_the_range(DType dtype) {
  using Limits = std::numeric_limits<T>;
  for (const T value :
       {T{0}, T{-1}, Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(),
        -Limits::denorm_min(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
        -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    for (size_t at = 0; at < 3; ++at) {
      std::vector<T> values(3, Limits::lowest());  // carries must not reach the neighbour
      values[at] = value;
      EXPECT_EQ(finite(values, dtype), std::isfinite(value)) << value << " at " << at;
    }
  }
}

TEST(AllFinite, EndsOfTheRange) {
  expect_ends_of_the_range<float>(DType::f32);
  expect_ends_of_the_range<double>(DType::f64);
}

TEST(AllFinite, OneAnywhereInMuch) {
  std::vector<Half> values((size_t{9} << 20) + 3, Half(1.0f));  // of several threads
  EXPECT_TRUE(finite(values, DType::f16));
  for (const size_t at : {size_t{0}, size_t{2047}, size_t{2048}, values.size() / 2,
                          values.size() - 4, values.size() - 1}) {
    values[at] = Half(std::numeric_limits<float>::infinity());
    EXPECT_FALSE(finite(values, DType::f16)) << at;
    values[at] = Half(1.0f);
  }
}

TEST(AllFinite, NothingAndIntegersAre) {
  EXPECT_TRUE(all_finite({}, DType::f32));
  EXPECT_TRUE(finite(std::vector<int32_t>{-1, 0x7f800000}, DType::i32));
  EXPECT_TRUE(finite(std::vector<uint8_t>(16, 0xff), DType::u8));
}

TEST(AnyNan, InfinityIsNone) {
  const auto nan = [](const auto& values, DType dtype) {
    return any_nan(std::as_bytes(std::span(values)), dtype);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(nan(std::vector<float>{1, -infinity, infinity}, DType::f32));
  EXPECT_TRUE(nan(std::vector<float>{1, -infinity, std::nanf("")}, DType::f32));
  EXPECT_FALSE(nan(std::vector<BFloat16>{BFloat16(infinity)}, DType::bf16));
  EXPECT_TRUE(nan(std::vector<Half>{Half(1.0f), Half(std::nanf(""))}, DType::f16));
  EXPECT_FALSE(nan(std::vector<uint8_t>(16, 0xff), DType::u8));
}

}  // namespace
}  // namespace thimble
