// Random numbers: the same when they are drawn again, others with every part of the key, and of the
// distribution that they are said to have.
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "ops/pointwise/random_numbers.h"
#include "reference_call.h"

namespace thimble {
namespace {

constexpr int64_t kElements = 40001;  // not a multiple of the four words of a block

std::vector<double> draw(const char* kind, int64_t stream = 1,
                         std::vector<double> rng = {7, 3, 0}) {
  return reference_call("random", {{{{3}, DType::i64}, std::move(rng)}},
                        {{"shape", std::vector<int64_t>{kElements}},
                         {"kind", std::string(kind)},
                         {"stream", stream}})[0];
}

// Five deviations of a mean over so many.
double slack(double deviation) { return 5 * deviation / std::sqrt(double{kElements}); }

double mean(const std::vector<double>& x, int power) {
  double sum = 0;
  for (const double one : x) sum += std::pow(one, power);
  return sum / static_cast<double>(x.size());
}

TEST(Random, NormalNumbersHaveTheirMoments) {
  const std::vector<double> x = draw("normal");
  EXPECT_NEAR(mean(x, 1), 0, slack(1));
  EXPECT_NEAR(mean(x, 2), 1, slack(std::sqrt(2.0)));
  EXPECT_NEAR(mean(x, 3), 0, slack(std::sqrt(15.0)));
  EXPECT_NEAR(mean(x, 4), 3, slack(std::sqrt(96.0)));
}

TEST(Random, NeighboursAreIndependent) {
  const std::vector<double> x = draw("normal");
  for (const size_t apart : {1, 2, 3, 4}) {
    double sum = 0;
    for (size_t i = apart; i < x.size(); ++i) sum += x[i] * x[i - apart];
    EXPECT_NEAR(sum / kElements, 0, slack(1)) << apart;
  }
}

TEST(Random, UniformNumbersLieBetweenZeroAndOne) {
  const std::vector<double> x = draw("uniform");
  for (const double one : x) ASSERT_TRUE(one >= 0 && one < 1);
  EXPECT_NEAR(mean(x, 1), 0.5, slack(std::sqrt(1.0 / 12)));
  EXPECT_NEAR(mean(x, 2), 1.0 / 3, slack(std::sqrt(4.0 / 45)));
}

TEST(Random, ExponentialNumbersAreAboveZero) {
  const std::vector<double> x = draw("exponential");
  for (const double one : x) ASSERT_GT(one, 0);
  EXPECT_NEAR(mean(x, 1), 1, slack(1));
  EXPECT_NEAR(mean(x, 2), 2, slack(std::sqrt(20.0)));
}

// Of the words at either end, too: no logarithm of 0, none that is 0.
TEST(Random, SharesAreNeitherZeroNorOne) {
  EXPECT_GT(share_from(0), 0);
  EXPECT_LT(share_from(~0u), 1);
  EXPECT_GT(-std::log(share_from(~0u)), 0);
}

TEST(Random, EveryPartOfTheKeyChangesTheNumbers) {
  const std::vector<double> base = draw("normal", 4, {7, 3, 1});
  EXPECT_EQ(base, draw("normal", 4, {7, 3, 1}));
  for (const auto& other : {draw("normal", 5, {7, 3, 1}), draw("normal", 4, {8, 3, 1}),
                            draw("normal", 4, {7, 4, 1}), draw("normal", 4, {7, 3, 2})}) {
    double product = 0;
    for (size_t i = 0; i < base.size(); ++i) product += base[i] * other[i];
    EXPECT_NEAR(product / kElements, 0, slack(1));
  }
}

TEST(Random, RefusesOtherDraws) { EXPECT_THROW(draw("cauchy"), UserError); }

}  // namespace
}  // namespace thimble
