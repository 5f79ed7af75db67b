#include "data/order/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

// Record i is (i, 1000 i), after a while that differs from record to record; some cannot be read.
class Slow final : public Dataset {
 public:
  explicit Slow(int64_t bad = -1) : bad_(bad) {
    info_ = {.name = "slow", .train_count = 1000, .test_count = 7};
    info_.fields = {{.name = "a", .dtype = DType::i32}, {.name = "b", .dtype = DType::i64}};
    info_.decoded = true;
  }
  const DatasetInfo& info() const override { return info_; }
  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    ++reads;
    std::this_thread::sleep_for(std::chrono::microseconds(index * 7919 % 300));
    user_check(index != bad_, "record {} is bad", index);
    const int64_t sign = split == Split::test ? -1 : 1;
    parts[0].all<int32_t>()[0] = static_cast<int32_t>(sign * index);
    parts[1].all<int64_t>()[0] = sign * 1000 * index;
  }
  mutable std::atomic<int> reads = 0;

 private:
  DatasetInfo info_;
  int64_t bad_;
};

int64_t reversed(Split split, int64_t position) {
  if (split == Split::test) return position < 7 ? position : -1;
  return 999 - position;
}

std::pair<int32_t, int64_t> take(ReadAhead& ahead, Split split, int64_t position) {
  std::pair<int32_t, int64_t> record;
  const RecordPart parts[2] = {{reinterpret_cast<std::byte*>(&record.first), 4, 4, 1},
                               {reinterpret_cast<std::byte*>(&record.second), 8, 8, 1}};
  ahead.read(split, position, parts);
  return record;
}

TEST(ReadAhead, GivesTheRecordsInOrder) {
  const Slow data;
  ReadAhead ahead(data, reversed, 10);
  for (int64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(take(ahead, Split::train, i),
              (std::pair<int32_t, int64_t>(999 - i, 1000 * (999 - i))));
  }
  EXPECT_LE(data.reads, 211);  // none twice
}

TEST(ReadAhead, GoesAnywhere) {
  const Slow data;
  ReadAhead ahead(data, reversed, 4);
  for (const int64_t i : {5, 6, 7, 100, 101, 3, 4, 4, 5}) {
    EXPECT_EQ(take(ahead, Split::train, i).first, 999 - i);
  }
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(take(ahead, Split::test, i).first, -i);
  EXPECT_EQ(take(ahead, Split::train, 6).first, 993);
  EXPECT_EQ(take(ahead, Split::test, 0).first, 0);
}

TEST(ReadAhead, FailsWhereTheRecordDoes) {
  const Slow data(990);
  ReadAhead ahead(data, reversed, 20);
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(take(ahead, Split::train, i).first, 999 - i);
  EXPECT_TRUE(throws_saying<UserError>([&] { take(ahead, Split::train, 9); }, "record 990 is bad"));
  EXPECT_EQ(take(ahead, Split::train, 10).first, 989);
}

TEST(ReadAhead, EndsWhileItReads) {
  const Slow data;
  ReadAhead ahead(data, reversed, 50);
  EXPECT_EQ(take(ahead, Split::train, 0).first, 999);
}

}  // namespace
}  // namespace thimble
