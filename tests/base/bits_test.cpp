#include "base/number/bits.h"

#include <gtest/gtest.h>

#include <vector>

namespace thimble {
namespace {

TEST(Bits, CountAndVisitAgreeWithTestingEachBit) {
  std::vector<uint8_t> map(bitmap_bytes(203));
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<uint8_t>(i * 151 + 77);
  for (const int64_t begin : {0, 1, 7, 8, 9, 64, 130, 203}) {
    for (const int64_t end : {0, 1, 8, 15, 63, 64, 65, 72, 128, 137, 202, 203}) {
      std::vector<int64_t> expected, visited;
      for (int64_t at = begin; at < end; ++at) {
        if (test_bit(map.data(), at)) expected.push_back(at);
      }
      for_each_one(map.data(), begin, end, [&](int64_t at) { visited.push_back(at); });
      EXPECT_EQ(visited, expected) << begin << " to " << end;
      EXPECT_EQ(count_ones(map.data(), begin, end), static_cast<int64_t>(expected.size()));
    }
  }
}

TEST(Bits, SettingAndClearingTouchOneBit) {
  std::vector<uint8_t> map(3, 0xff);
  clear_bit(map.data(), 10);
  EXPECT_EQ(map, (std::vector<uint8_t>{0xff, 0xfb, 0xff}));
  set_bit(map.data(), 10);
  EXPECT_EQ(map, (std::vector<uint8_t>{0xff, 0xff, 0xff}));
}

}  // namespace
}  // namespace thimble
