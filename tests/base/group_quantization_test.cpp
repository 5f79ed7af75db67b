#include "base/number/group_quantization.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/number/random_stream.h"

namespace thimble {
namespace {

const RandomStream kRandom(std::array<int64_t, 3>{1, 2, 3}.data(), 4);

std::vector<float> drawn(size_t count) {
  std::vector<float> x(count);
  kRandom.uniform(1 << 20, x);
  for (float& value : x) value = 3 * value - 1;
  return x;
}

template <int kBits>
void expect_errors_below_a_step() {
  for (const size_t count : {size_t{1}, size_t{5}, size_t{256}}) {
    const std::vector<float> x = drawn(count);
    std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(x.size(), kBits)));
    std::vector<float> back(count), dither(count);
    kRandom.uniform(0, dither);
    const CodeRange range =
        encode_group<kBits, kAnyNumber>(x.data(), static_cast<int64_t>(count), packed.data(),
                                        [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
    decode_group<kBits, kAnyNumber>(packed.data(), range, static_cast<int64_t>(count), back.data());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_LE(std::abs(back[i] - x[i]), range.step * 1.0001f);
    }
    const auto lowest = std::min_element(x.begin(), x.end()) - x.begin();
    EXPECT_EQ(back[static_cast<size_t>(lowest)], x[static_cast<size_t>(lowest)]);
  }
}

// Calls body(integral constant) for every width.
template <class Body>
void for_each_width(const Body& body) {
  for (int bits = kLeastCodeBits; bits <= kMostCodeBits; ++bits) {
    SCOPED_TRACE(bits);
    with_group_code(bits, false, [&](auto width, auto) {
      EXPECT_EQ(width, bits);
      body(width);
    });
  }
}

TEST(GroupCode, ErrorsStayBelowAStep) {
  for_each_width([](auto bits) { expect_errors_below_a_step<bits>(); });
}

// The last bytes are whole, and what lies behind them is neither written nor read.
TEST(GroupCode, FillsAsManyBytesAsItsBits) {
  for_each_width([](auto bits) {
    for (int64_t count = 1; count <= 19; ++count) {
      const std::vector<float> x = drawn(static_cast<size_t>(count));
      const auto bytes = static_cast<size_t>(packed_bytes(count, bits));
      std::vector<uint8_t> packed(bytes + 8, 0xa5);
      const CodeRange range = encode_group<bits, kAnyNumber>(x.data(), count, packed.data(),
                                                             [](int64_t) { return 0.5f; });
      EXPECT_EQ(std::count(packed.begin() + static_cast<ptrdiff_t>(bytes), packed.end(), 0xa5), 8);
      for (int64_t i = 0; i < count;
           ++i) {  // bit by bit, as the drawing at the head of the code says
        int level = 0;
        for (int64_t b = 0; b < bits; ++b) {
          const int64_t at = i * bits + b;
          level |= (packed[static_cast<size_t>(at / 8)] >> (at % 8) & 1) << b;
        }
        std::vector<float> back(static_cast<size_t>(count));
        decode_group<bits, kAnyNumber>(packed.data(), range, count, back.data());
        EXPECT_EQ(back[static_cast<size_t>(i)], decode_level<kAnyNumber>(range, level));
      }
    }
  });
}

TEST(GroupCode, IsRightOnAverage) {
  constexpr int kDraws = 4096;
  const std::vector<float> x = drawn(64);
  std::vector<double> sum(64, 0);
  std::vector<uint8_t> packed(16);
  std::vector<float> back(64), dither(64);
  float step = 0;
  for (int d = 0; d < kDraws; ++d) {
    kRandom.uniform(d * 64, dither);
    const CodeRange range = encode_group<2, kAnyNumber>(
        x.data(), 64, packed.data(), [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
    decode_group<2, kAnyNumber>(packed.data(), range, 64, back.data());
    for (size_t i = 0; i < 64; ++i) sum[i] += static_cast<double>(back[i] - x[i]);
    step = range.step;
  }
  // Five deviations of a mean; one draw deviates by half a step at most.
  const double slack = 5 * 0.5 * static_cast<double>(step) / std::sqrt(kDraws);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(sum[i] / kDraws, 0, slack);
}

// Not below zero: a fifth is zero, and some are tiny.
std::vector<float> rectified(size_t count) {
  std::vector<float> x = drawn(count);
  for (float& value : x) value = value < -0.4f ? 0 : value < 0 ? 1e-30f : value;
  return x;
}

template <int kBits>
void expect_zeros_kept_and_means_right() {
  constexpr int kDraws = 4096;
  const std::vector<float> x = rectified(256);
  std::vector<double> sum(256, 0);
  std::vector<uint8_t> packed(256);
  std::vector<float> back(256), dither(256);
  float step = 0;
  for (int d = 0; d < kDraws; ++d) {
    kRandom.uniform(d * 256, dither);
    const CodeRange range = encode_group<kBits, kZerosKept>(
        x.data(), 256, packed.data(), [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
    decode_group<kBits, kZerosKept>(packed.data(), range, 256, back.data());
    for (size_t i = 0; i < 256; ++i) {
      ASSERT_EQ(back[i] > 0, x[i] > 0) << x[i];
      sum[i] += static_cast<double>(back[i] - x[i]);
    }
    step = range.step;
  }
  // Six deviations of a mean; one draw deviates by half a step at most.
  const double slack = 6 * 0.5 * static_cast<double>(step) / std::sqrt(kDraws);
  for (size_t i = 0; i < 256; ++i) EXPECT_NEAR(sum[i] / kDraws, 0, slack);
}

TEST(GroupCode, KeepsZerosAndIsRightOnAverage) {
  for_each_width([](auto bits) { expect_zeros_kept_and_means_right<bits>(); });
}

TEST(GroupCode, KeepsZerosOfGroupsWithFewNumbers) {
  const auto always = [](int64_t) { return 0.99f; };
  for (const std::vector<float>& x :
       {std::vector<float>(5, 0.0f), {0, 3, 0, 3, 3}, {1e-45f, 0, 1e-44f, 0, 0}, {2, 2, 2, 2, 2}}) {
    std::vector<uint8_t> packed(2);
    std::vector<float> back(5);
    const CodeRange range = encode_group<2, kZerosKept>(x.data(), 5, packed.data(), always);
    decode_group<2, kZerosKept>(packed.data(), range, 5, back.data());
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(back[i] > 0, x[i] > 0) << x[i];
    if (x[0] != 1e-45f) {
      EXPECT_EQ(back, x);
    }
  }
}

TEST(GroupCode, GroupsOfOneNumberAreExactAndNonFiniteOnesShow) {
  std::vector<float> x(10, 2.5f), back(10);
  std::vector<uint8_t> packed(10);
  const auto never = [](int64_t) { return 0.5f; };
  decode_group<8, kAnyNumber>(packed.data(),
                              encode_group<8, kAnyNumber>(x.data(), 10, packed.data(), never), 10,
                              back.data());
  EXPECT_EQ(back, x);
  x[3] = std::numeric_limits<float>::infinity();
  decode_group<8, kAnyNumber>(packed.data(),
                              encode_group<8, kAnyNumber>(x.data(), 10, packed.data(), never), 10,
                              back.data());
  EXPECT_TRUE(std::isnan(back[0]));
  decode_group<8, kZerosKept>(packed.data(),
                              encode_group<8, kZerosKept>(x.data(), 10, packed.data(), never), 10,
                              back.data());
  EXPECT_TRUE(std::isnan(back[0]));
}

}  // namespace
}  // namespace thimble
