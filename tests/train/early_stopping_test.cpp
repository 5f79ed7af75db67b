#include "train/early_stopping.h"

#include <gtest/gtest.h>

#include <limits>

#include "file_support.h"

namespace thimble {
namespace {

Progress tested(int64_t step, double loss) {
  Progress progress = {.step = step};
  progress.test.loss = loss;
  return progress;
}

TEST(EarlyStopping, EndsAfterTestsWithoutABetterLoss) {
  const TemporaryFolder folder;
  EarlyStopping best(folder.path(), 2, false);
  EXPECT_TRUE(best.is_best(tested(1, 2.0)));
  EXPECT_FALSE(best.is_best(tested(2, 2.0)));
  EXPECT_FALSE(best.over());
  EXPECT_FALSE(best.is_best(tested(3, 2.5)));
  EXPECT_TRUE(best.over());
  EXPECT_EQ(best.step(), 1);
}

// A loss that is no number is neither the best nor a bound for those behind it, and a resumed run
// reads what was saved of it.
TEST(EarlyStopping, ALossThatIsNoNumberIsNeverTheBest) {
  const TemporaryFolder folder;
  EarlyStopping best(folder.path(), 3, false);
  EXPECT_FALSE(best.is_best(tested(1, std::numeric_limits<double>::quiet_NaN())));
  EXPECT_FALSE(best.is_best(tested(2, std::numeric_limits<double>::infinity())));
  best.save();
  EarlyStopping resumed(folder.path(), 3, true);
  EXPECT_EQ(resumed.step(), 0);
  EXPECT_TRUE(resumed.is_best(tested(3, 1.5)));
  EXPECT_EQ(resumed.loss(), 1.5);
}

}  // namespace
}  // namespace thimble
