#include "data/order/shuffle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace thimble {
namespace {

void expect_bijection(int64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<bool> seen(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t to = permuted(i, n, seed, epoch);
    ASSERT_GE(to, 0);
    ASSERT_LT(to, n);
    ASSERT_FALSE(seen[static_cast<size_t>(to)]) << "n = " << n << ", twice " << to;
    seen[static_cast<size_t>(to)] = true;
  }
}

TEST(Shuffle, IsABijection) {
  for (int64_t n = 1; n <= 300; ++n) expect_bijection(n, 7, static_cast<uint64_t>(n));
  for (const int64_t n : {1023, 1024, 1025, 1442, 50'000, 60'000}) expect_bijection(n, 0, 3);
}

TEST(Shuffle, DiffersBetweenEpochsAndSeeds) {
  const auto fixed_points = [](uint64_t seed, uint64_t epoch) {
    int64_t same = 0;
    for (int64_t i = 0; i < 10'000; ++i) {
      same += permuted(i, 10'000, 1, 0) == permuted(i, 10'000, seed, epoch);
    }
    return same;
  };
  // Two independent permutations agree at one place on average; eleven has odds of 1 in 10^8.
  EXPECT_LT(fixed_points(1, 1), 11);
  EXPECT_LT(fixed_points(2, 0), 11);
  EXPECT_LT(fixed_points(1, uint64_t{1} << 32), 11);
  EXPECT_EQ(fixed_points(1, 0), 10'000);
}

TEST(Shuffle, IsRoughlyUniform) {
  // Where position 0 goes over many epochs, for tiny and larger n: chi-squared over n cells has
  // mean n - 1 and deviation sqrt(2(n - 1)); five deviations are allowed.
  for (const int64_t n : {2, 3, 5, 8, 10, 100}) {
    for (const int64_t position : {int64_t{0}, n - 1}) {
      std::vector<double> counts(static_cast<size_t>(n));
      const int epochs = 2000 * static_cast<int>(n);
      for (int epoch = 0; epoch < epochs; ++epoch) {
        ++counts[static_cast<size_t>(permuted(position, n, 5, static_cast<uint64_t>(epoch)))];
      }
      double chi = 0;
      for (const double count : counts) chi += (count - 2000) * (count - 2000) / 2000;
      const double freedom = static_cast<double>(n - 1);
      EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom)) << "n = " << n;
    }
  }
}

TEST(Shuffle, NeighboursDoNotStayTogether) {
  // The mean distance between the images of neighbours is n / 3 for a random order.
  constexpr int64_t n = 50'000;
  double distance = 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    distance += static_cast<double>(std::abs(permuted(i, n, 3, 0) - permuted(i + 1, n, 3, 0)));
  }
  EXPECT_NEAR(distance / (n - 1), n / 3.0, n / 100.0);
}

TEST(Shuffle, IsTheSameEverywhere) {
  // Pinned: a change of the order changes every training run.
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 10; ++i) order.push_back(permuted(i, 10, 42, 1));
  EXPECT_EQ(order, (std::vector<int64_t>{3, 0, 9, 5, 1, 2, 8, 6, 7, 4}));
  EXPECT_THROW(permuted(10, 10, 0, 0), InternalError);
}

}  // namespace
}  // namespace thimble
