#include "base/group_code.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random_stream.h"

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
        encode_group<kBits>(x.data(), static_cast<int64_t>(count), packed.data(),
                            [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
    decode_group<kBits>(packed.data(), range, static_cast<int64_t>(count), back.data());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_LE(std::abs(back[i] - x[i]), range.step * 1.0001f);
    }
    const auto lowest = std::min_element(x.begin(), x.end()) - x.begin();
    EXPECT_EQ(back[static_cast<size_t>(lowest)], x[static_cast<size_t>(lowest)]);
  }
}

TEST(GroupCode, ErrorsStayBelowAStep) {
  expect_errors_below_a_step<8>();
  expect_errors_below_a_step<4>();
  expect_errors_below_a_step<2>();
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
    const CodeRange range = encode_group<2>(
        x.data(), 64, packed.data(), [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
    decode_group<2>(packed.data(), range, 64, back.data());
    for (size_t i = 0; i < 64; ++i) sum[i] += static_cast<double>(back[i] - x[i]);
    step = range.step;
  }
  // Five deviations of a mean; one draw deviates by half a step at most.
  const double slack = 5 * 0.5 * static_cast<double>(step) / std::sqrt(kDraws);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(sum[i] / kDraws, 0, slack);
}

TEST(GroupCode, ZerosBehindAReluStayZeros) {
  std::vector<float> x = drawn(256);
  for (float& value : x) value = std::max(value, 0.0f);
  std::vector<uint8_t> packed(64);
  std::vector<float> back(256), dither(256);
  kRandom.uniform(0, dither);
  const CodeRange range = encode_group<2>(
      x.data(), 256, packed.data(), [&](int64_t i) { return dither[static_cast<size_t>(i)]; });
  decode_group<2>(packed.data(), range, 256, back.data());
  for (size_t i = 0; i < 256; ++i) EXPECT_TRUE(x[i] > 0 || back[i] == 0);
}

TEST(GroupCode, GroupsOfOneNumberAreExactAndNonFiniteOnesShow) {
  std::vector<float> x(10, 2.5f), back(10);
  std::vector<uint8_t> packed(10);
  const auto never = [](int64_t) { return 0.5f; };
  decode_group<8>(packed.data(), encode_group<8>(x.data(), 10, packed.data(), never), 10,
                  back.data());
  EXPECT_EQ(back, x);
  x[3] = std::numeric_limits<float>::infinity();
  decode_group<8>(packed.data(), encode_group<8>(x.data(), 10, packed.data(), never), 10,
                  back.data());
  EXPECT_TRUE(std::isnan(back[0]));
}

}  // namespace
}  // namespace thimble
