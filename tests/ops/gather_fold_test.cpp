// gather_fold_8bit against gather and momentum_fold_8bit, and against plain sums.
#include <cmath>
#include <random>

#include "base/number/bits.h"
#include "base/number/dynamic_quantization.h"
#include "reference_call.h"

namespace thimble {
namespace {

constexpr int64_t kTotal = 700;  // two whole blocks and a part of a third

struct Pool {
  std::vector<double> codes = std::vector<double>(kTotal);
  std::vector<double> scales = std::vector<double>(3);

  std::vector<double> decoded() const {
    std::vector<double> numbers;
    for (size_t i = 0; i < codes.size(); ++i) {
      numbers.push_back(scales[i / kCodeBlock] *
                        static_cast<double>(SignedCode::decode(static_cast<uint8_t>(codes[i]))));
    }
    return numbers;
  }
};

// A weight of 1200 elements, of which `ones` are kept, `first` where they begin in the pool.
struct Part {
  std::vector<double> dense, mask, nonzeros;
  int64_t first;

  Part(int64_t begin, int64_t ones, std::mt19937& random) : dense(1200), mask(150), first(begin) {
    std::vector<uint8_t> bits(mask.size(), 0);
    for (int64_t left = ones; left > 0;) {
      const auto at = static_cast<int64_t>(random() % dense.size());
      if (test_bit(bits.data(), at)) continue;
      set_bit(bits.data(), at);
      --left;
    }
    for (double& x : dense) x = std::normal_distribution<float>(0, 0.02f)(random);
    std::copy(bits.begin(), bits.end(), mask.begin());
    for_each_one(bits.data(), 0, 1200,
                 [&](int64_t at) { nonzeros.push_back(dense[static_cast<size_t>(at)]); });
  }
};

Pool any_pool(std::mt19937& random) {
  Pool pool;
  for (double& code : pool.codes) code = static_cast<double>(random() % 256);
  for (double& scale : pool.scales) scale = 0.5 + static_cast<double>(random() % 8) / 8;
  return pool;
}

Pool folded(const Pool& pool, const Part& part, int64_t stream, double factor = 1) {
  const auto out = reference_call("gather_fold_8bit",
                                  {{{{kTotal}, DType::u8}, pool.codes},
                                   {{{3}}, pool.scales},
                                   {{{1200}}, part.dense},
                                   {{{1}, DType::i64}, {static_cast<double>(part.first)}},
                                   {{{150}, DType::u8}, part.mask},
                                   {{{3}, DType::i64}, {1, 2, 3}},
                                   {{{1}}, {factor}}},
                                  {{"stream", stream}, {"scaled", int64_t{1}}});
  return {out[0], out[1]};
}

TEST(GatherFold, OfAllTheNonzerosHasTheBitsOfGatherAndFold) {
  std::mt19937 random(1);
  const Pool pool = any_pool(random);
  const Part part(0, kTotal, random);
  const auto expected = reference_call("momentum_fold_8bit",
                                       {{{{kTotal}, DType::u8}, pool.codes},
                                        {{{3}}, pool.scales},
                                        {{{kTotal}}, part.nonzeros},
                                        {{{3}, DType::i64}, {1, 2, 3}}},
                                       {{"stream", int64_t{9}}});
  const Pool got = folded(pool, part, 9);
  EXPECT_EQ(got.codes, expected[0]);
  EXPECT_EQ(got.scales, expected[1]);
}

TEST(GatherFold, OfAScaledGradientHasTheBitsOfThePlainOne) {
  std::mt19937 random(4);
  const Pool pool = any_pool(random);
  Part part(77, 500, random);
  const Pool expected = folded(pool, part, 5);
  for (double& x : part.dense) x *= 128;
  const Pool got = folded(pool, part, 5, 1.0 / 128);
  EXPECT_EQ(got.codes, expected.codes);
  EXPECT_EQ(got.scales, expected.scales);
}

TEST(GatherFold, LeavesBlocksOfOthersAlone) {
  std::mt19937 random(2);
  const Pool pool = any_pool(random);
  const Pool got = folded(pool, Part(300, 200, random), 4);  // within the second block
  for (const size_t block : {0u, 2u}) {
    EXPECT_EQ(got.scales[block], pool.scales[block]);
    for (size_t i = block * kCodeBlock; i < std::min<size_t>((block + 1) * kCodeBlock, kTotal);
         ++i) {
      ASSERT_EQ(got.codes[i], pool.codes[i]) << i;
    }
  }
  const Pool skipped = folded(pool, Part(300, 200, random), 4, 0);
  EXPECT_EQ(skipped.codes, pool.codes);
  EXPECT_EQ(skipped.scales, pool.scales);
}

// Two weights that share a block, folded many times over, each time from the same pool.
TEST(GatherFold, AddsTheGradientOnAverage) {
  std::mt19937 random(3);
  Pool pool = any_pool(random);
  const Part a(0, 333, random), b(333, kTotal - 333, random);
  std::vector<double> expected = pool.decoded();
  constexpr double kFactor = 0.5;
  for (size_t i = 0; i < 333; ++i) expected[i] += kFactor * a.nonzeros[i];
  for (size_t i = 333; i < kTotal; ++i) expected[i] += kFactor * b.nonzeros[i - 333];
  constexpr int kTimes = 400;
  std::vector<double> mean(kTotal);
  for (int64_t time = 0; time < kTimes; ++time) {
    const Pool got = folded(folded(pool, a, 2 * time, kFactor), b, 2 * time + 1, kFactor);
    const std::vector<double> numbers = got.decoded();
    for (size_t i = 0; i < numbers.size(); ++i) {
      mean[i] += numbers[i] / kTimes;
      // Levels are 1.4 % of the scale apart at most; a number is rounded twice in the shared block.
      ASSERT_NEAR(numbers[i], expected[i], 2 * 0.0141 * got.scales[i / kCodeBlock]) << i;
    }
  }
  // Six deviations of the mean of 400 roundings by a level of at most 1.4 % of a scale below 1.5.
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], expected[i], 6 * 0.0141 * 1.5 / std::sqrt(kTimes)) << i;
  }
}

}  // namespace
}  // namespace thimble
