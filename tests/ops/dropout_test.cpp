#include <cmath>

#include "base/error.h"
#include "ops/pointwise/dropout_mask.h"
#include "reference_call.h"

namespace thimble {
namespace {

constexpr int64_t kElements = 40001;  // not a multiple of the four words of a block

std::vector<double> drop(double p, int64_t stream, std::vector<double> rng) {
  const TestTensor ones = {{{kElements}, DType::f32}, std::vector<double>(kElements, 1.0)};
  return reference_call("dropout", {ones, {{{3}, DType::i64}, std::move(rng)}},
                        {{"p", p}, {"stream", stream}})[0];
}

TEST(Dropout, KeepsTheRightShareAndScalesIt) {
  for (const double p : {0.1, 0.5, 0.8}) {
    int64_t kept = 0;
    for (const double y : drop(p, 1, {7, 3, 0})) {
      if (y == 0) continue;
      ++kept;
      EXPECT_NEAR(y, 1 / (1 - p), 1e-6);  // f32
    }
    // Five deviations of a binomial.
    const double slack = 5 * std::sqrt(kElements * p * (1 - p));
    EXPECT_NEAR(static_cast<double>(kept), kElements * (1 - p), slack);
  }
}

TEST(Dropout, SameKeySameMask) { EXPECT_EQ(drop(0.5, 4, {7, 3, 1}), drop(0.5, 4, {7, 3, 1})); }

// Independent fair masks agree on half of the elements, give or take five deviations.
TEST(Dropout, EveryPartOfTheKeyChangesTheMask) {
  const std::vector<double> base = drop(0.5, 4, {7, 3, 1});
  const std::vector<std::vector<double>> others = {drop(0.5, 5, {7, 3, 1}), drop(0.5, 4, {8, 3, 1}),
                                                   drop(0.5, 4, {7, 4, 1}), drop(0.5, 4, {7, 3, 2}),
                                                   drop(0.5, 3, {7, 4, 1})};
  for (const std::vector<double>& other : others) {
    int64_t equal = 0;
    for (size_t i = 0; i < base.size(); ++i) equal += base[i] == other[i] ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(equal), kElements / 2.0, 2.5 * std::sqrt(kElements));
  }
}

TEST(Dropout, MaskIsTheSharedFunction) {
  const std::vector<double> y = drop(0.3, 9, {11, 2, 5});
  const std::array<int64_t, 3> rng = {11, 2, 5};
  const DropoutMask mask(rng.data(), 9, 0.3);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i] != 0, mask.keeps(mask.words(static_cast<int64_t>(i / 4))[i % 4]));
  }
}

TEST(Dropout, ZeroProbabilityIsTheIdentity) {
  for (const double y : drop(0, 1, {1, 1, 1})) EXPECT_EQ(y, 1);
}

TEST(Dropout, RefusesToDropEverything) { EXPECT_THROW(drop(1, 1, {1, 1, 1}), UserError); }

}  // namespace
}  // namespace thimble
