#include <gtest/gtest.h>

#include <array>

#include "data/read_image.h"

namespace thimble {
namespace {

TEST(Digits, HasEveryImageOnceInAFixedSplit) {
  const auto digits = open_dataset("digits");
  EXPECT_EQ(digits->info().train_count, 1442);
  EXPECT_EQ(digits->info().test_count, 355);
  EXPECT_EQ(digits->info().field("pixels").shape, (Shape{8, 8, 1}));
  std::array<int, 10> train{}, test{};
  std::array<uint8_t, 64> image;
  int32_t label = -1;
  for (int64_t i = 0; i < 1442; ++i) {
    read_image(*digits, Split::train, i, image, label);
    ++train.at(static_cast<size_t>(label));
  }
  for (int64_t i = 0; i < 355; ++i) {
    read_image(*digits, Split::test, i, image, label);
    ++test.at(static_cast<size_t>(label));
  }
  // The counts that the set's own description gives, a fifth of each (rounded down) for testing.
  constexpr std::array<int, 10> counts = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  for (size_t digit = 0; digit < 10; ++digit) {
    EXPECT_EQ(train[digit] + test[digit], counts[digit]);
    EXPECT_EQ(test[digit], counts[digit] / 5);
  }
}

TEST(Digits, FirstImageIsTheKnownZero) {
  const auto digits = open_dataset("digits");
  std::array<uint8_t, 64> image;
  int32_t label = -1;
  read_image(*digits, Split::train, 0, image, label);
  EXPECT_EQ(label, 0);
  constexpr std::array<int, 64> values = {0, 0, 5,  13, 9,  1,  0, 0, 0, 0, 13, 15, 10, 15, 5, 0,
                                          0, 3, 15, 2,  0,  11, 8, 0, 0, 4, 12, 0,  0,  8,  8, 0,
                                          0, 5, 8,  0,  0,  9,  8, 0, 0, 4, 11, 0,  1,  12, 7, 0,
                                          0, 2, 14, 5,  10, 12, 0, 0, 0, 0, 6,  13, 10, 0,  0, 0};
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(image[i], (values[i] * 255 + 8) / 16) << i;
}

}  // namespace
}  // namespace thimble
