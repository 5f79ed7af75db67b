// Records of like length together, in an order that depends on the seed alone.
#include "data/order/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

// Records of given lengths; nothing is ever read of them.
class OfLengths final : public Dataset {
 public:
  explicit OfLengths(std::vector<int64_t> lengths, std::vector<int64_t> tested = {1})
      : lengths_(std::move(lengths)), tested_(std::move(tested)) {
    info_ = {.name = "lengths",
             .train_count = std::ssize(lengths_),
             .test_count = std::ssize(tested_),
             .fields = {{.name = "tokens", .dtype = DType::i32, .shape = {100}, .variable = true}}};
  }
  const DatasetInfo& info() const override { return info_; }
  int64_t length(Split split, int64_t index, size_t) const override {
    return (split == Split::train ? lengths_ : tested_)[static_cast<size_t>(index)];
  }
  void read(Split, int64_t, std::span<const RecordPart>) const override {}

 private:
  std::vector<int64_t> lengths_, tested_;
  DatasetInfo info_;
};

std::vector<int64_t> mixed(int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) lengths.push_back(1 + (i * 7919) % 30);
  return lengths;
}

const std::vector<Bucket> kBuckets = {{30, 3}, {8, 12}, {16, 6}};

std::vector<std::vector<int64_t>> epoch_of(const BucketOrder& order, int64_t epoch) {
  std::vector<std::vector<int64_t>> steps;
  for (int64_t s = 0; s < order.steps_per_epoch(); ++s) {
    const int64_t step = epoch * order.steps_per_epoch() + s;
    steps.emplace_back();
    for (int64_t row = 0; row < order.bucket(step).rows; ++row) {
      EXPECT_EQ(order.record(step, row).epoch, static_cast<uint64_t>(epoch));
      steps.back().push_back(order.record(step, row).index);
    }
  }
  return steps;
}

TEST(Buckets, AnEpochHasEveryRecordOnceInABatchThatHoldsIt) {
  std::vector<int64_t> lengths = mixed(200);
  for (const bool sorted : {false, true}) {
    if (sorted) std::ranges::sort(lengths);
    const OfLengths data(lengths);
    const BucketOrder order(data, kBuckets, 7);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<int64_t> seen;
      std::map<int64_t, int> batches;
      const auto steps = epoch_of(order, epoch);
      for (size_t s = 0; s < steps.size(); ++s) {
        const Bucket& bucket =
            order.bucket(epoch * order.steps_per_epoch() + static_cast<int64_t>(s));
        ++batches[bucket.length];
        for (const int64_t record : steps[s]) {
          EXPECT_LE(lengths[static_cast<size_t>(record)], bucket.length);
          EXPECT_TRUE(seen.insert(record).second);
        }
      }
      EXPECT_EQ(batches.size(), 3u);
      // Fewer than a batch of the longest wait.
      EXPECT_GT(seen.size(), lengths.size() - 3);
    }
  }
}

TEST(Buckets, TheSeedAndTheEpochAreTheOrder) {
  const OfLengths data(mixed(200));
  const BucketOrder order(data, kBuckets, 7), again(data, kBuckets, 7), other(data, kBuckets, 8);
  EXPECT_EQ(epoch_of(order, 1), epoch_of(again, 1));
  EXPECT_NE(epoch_of(order, 1), epoch_of(order, 0));
  EXPECT_NE(epoch_of(order, 0), epoch_of(other, 0));
}

TEST(Buckets, WhatDoesNotFitIsRefused) {
  const OfLengths data(mixed(50)), tested({3, 4}, {31});
  const std::vector<Bucket> too_short = {{16, 6}}, too_many = {{30, 51}};
  EXPECT_TRUE(throws_saying<UserError>([&] { BucketOrder(data, too_short, 1); }, "longest bucket",
                                       "16", "--lengths"));
  EXPECT_TRUE(throws_saying<UserError>([&] { BucketOrder(tested, kBuckets, 1); }, "31 tokens"));
  EXPECT_TRUE(throws_saying<UserError>([&] { BucketOrder(data, too_many, 1); }, "--tokens"));
}

int64_t padded(const std::vector<int64_t>& records, const std::vector<int64_t>& lengths) {
  int64_t sum = 0;
  for (const int64_t record : records) sum += *std::ranges::lower_bound(lengths, record);
  return sum;
}

// Against every choice there is.
TEST(Buckets, LengthsLeaveTheFewestPaddedPositions) {
  const std::vector<int64_t> records = {1, 1, 2, 3, 3, 3, 3, 7, 8, 8, 9, 9, 9, 10};
  const OfLengths data(records, {11});
  for (int64_t most = 3; most <= 5; ++most) {  // any length may be chosen then
    int64_t best = INT64_MAX;
    for (unsigned chosen = 0; chosen < 1u << 10; ++chosen) {
      std::vector<int64_t> lengths;
      for (int64_t l = 1; l <= 10; ++l) {
        if ((chosen >> (l - 1)) & 1) lengths.push_back(l);
      }
      lengths.push_back(11);  // what is tested on has to fit
      if (std::ssize(lengths) <= most) best = std::min(best, padded(records, lengths));
    }
    const std::vector<int64_t> lengths = choose_lengths(data, most);
    EXPECT_LE(std::ssize(lengths), most);
    EXPECT_EQ(lengths.back(), 11);
    EXPECT_EQ(padded(records, lengths), best);
  }
}

TEST(Buckets, LongRecordsHaveLengthsOfEight) {
  std::vector<int64_t> records;
  for (int64_t i = 0; i < 1000; ++i) records.push_back(1 + i % 250);
  const std::vector<int64_t> lengths = choose_lengths(OfLengths(records), 13);
  EXPECT_EQ(lengths.size(), 13u);
  EXPECT_EQ(lengths.back(), 256);
  for (const int64_t length : lengths) EXPECT_EQ(length % 8, 0);
}

}  // namespace
}  // namespace thimble
