// The adding problem and the copy task are what they say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"

namespace thimble {
namespace {

std::unique_ptr<Dataset> open(const char* name, RecordField wanted, uint64_t seed = 3) {
  return open_dataset(
      name, {.wanted = {std::move(wanted)}, .train_count = 200, .test_count = 50, .seed = seed});
}

template <class T>
RecordPart part(std::vector<T>& numbers, int64_t entry) {
  const auto size = static_cast<int64_t>(sizeof(T));
  return {reinterpret_cast<std::byte*>(numbers.data()), entry * size, entry * size,
          static_cast<int64_t>(numbers.size()) / entry};
}

struct Sum {
  std::vector<float> frames;
  float number;
};
Sum read_sum(const Dataset& data, Split split, int64_t index, int64_t length) {
  Sum sum = {std::vector<float>(static_cast<size_t>(2 * length)), 0};
  std::vector<float> number(1);
  const RecordPart parts[] = {part(sum.frames, 2), part(number, 1)};
  data.read(split, index, parts);
  sum.number = number[0];
  return sum;
}

TEST(Adding, TheSumOfTwoMarkedNumbersOneInEachHalf) {
  constexpr int64_t kLength = 31;
  const auto data = open("adding", {.name = "sequence", .shape = {kLength, 50}});
  EXPECT_EQ(to_string(data->info().field("sequence").shape), "[31,2]");
  double error = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const Sum sum = read_sum(*data, Split::train, i, kLength);
    float wanted = 0;
    int marks[2] = {};
    for (int64_t t = 0; t < kLength; ++t) {
      const float value = sum.frames[static_cast<size_t>(2 * t)];
      const float mark = sum.frames[static_cast<size_t>(2 * t + 1)];
      EXPECT_TRUE(value >= 0 && value < 1);
      EXPECT_TRUE(mark == 0 || mark == 1);
      if (mark == 1) wanted += value, ++marks[t < kLength / 2 ? 0 : 1];
    }
    EXPECT_EQ(marks[0], 1);
    EXPECT_EQ(marks[1], 1);
    EXPECT_EQ(sum.number, wanted);
    error += static_cast<double>((sum.number - 1) * (sum.number - 1)) / 200;
  }
  // The variance of a sum of two uniform numbers, give or take four deviations of its mean.
  EXPECT_NEAR(error, 1.0 / 6, 4 * 0.2 / std::sqrt(200.0));
}

TEST(Adding, SplitsAndSeedsDiffer) {
  const RecordField wanted = {.name = "sequence", .shape = {8, 2}};
  const auto data = open("adding", wanted), other = open("adding", wanted, 4);
  const Sum sum = read_sum(*data, Split::train, 5, 8);
  EXPECT_EQ(read_sum(*data, Split::train, 5, 8).frames, sum.frames);
  EXPECT_NE(read_sum(*data, Split::test, 5, 8).frames, sum.frames);
  EXPECT_NE(read_sum(*other, Split::train, 5, 8).frames, sum.frames);
}

TEST(Copy, SymbolsComeAgainBehindTheSign) {
  constexpr size_t kLength = 40, kSymbols = 10;
  const auto data = open("copy", {.name = "tokens", .shape = {kLength}});
  std::vector<int32_t> tokens(kLength), targets(kLength);
  const RecordPart parts[] = {part(tokens, 1), part(targets, 1)};
  std::vector<int32_t> seen;
  for (int64_t i = 0; i < 200; ++i) {
    data->read(Split::train, i, parts);
    const size_t answer = kLength - kSymbols;
    EXPECT_EQ(tokens[answer - 1], 1);
    for (size_t t = 0; t < kLength; ++t) {
      if (t < kSymbols) {
        EXPECT_TRUE(tokens[t] >= 2 && tokens[t] < 10);
        EXPECT_EQ(targets[answer + t], tokens[t]);
        seen.push_back(tokens[t]);
      } else if (t != answer - 1) {
        EXPECT_EQ(tokens[t], 0);
      }
      if (t < answer) {
        EXPECT_EQ(targets[t], 0);
      }
    }
  }
  for (int32_t symbol = 2; symbol < 10; ++symbol) {
    EXPECT_GT(std::ranges::count(seen, symbol), 150);  // of 2,000, an eighth each
  }
}

TEST(Copy, AShortOneHasFewerSymbols) {
  const auto data = open("copy", {.name = "tokens", .shape = {5}});
  std::vector<int32_t> tokens(5), targets(5);
  const RecordPart parts[] = {part(tokens, 1), part(targets, 1)};
  data->read(Split::test, 0, parts);
  EXPECT_EQ(targets, (std::vector<int32_t>{0, 0, 0, tokens[0], tokens[1]}));
  EXPECT_THROW(open("copy", {.name = "tokens", .shape = {2}}), UserError);
}

}  // namespace
}  // namespace thimble
