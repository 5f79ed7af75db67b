#include "base/host/parallel.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace thimble {
namespace {

TEST(ForRanges, CoversEveryNumberOnceFromMultiplesOfTheGrain) {
  for (const int64_t grain : {1, 4, 7, 64}) {
    for (const int64_t count : {0, 1, 3, 4, 5, 63, 64, 65, 1000, 1001}) {
      std::vector<int> seen(static_cast<size_t>(count), 0);  // ranges share no element
      for_ranges(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % grain, 0);
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1)) << count << " by " << grain;
    }
  }
}

TEST(ForRanges, OneGrainStaysOnTheCallersThread) {
  std::thread::id where;
  for_ranges(64, 64, [&](int64_t, int64_t) { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

}  // namespace
}  // namespace thimble
