#include "execute/streams.h"

#include <gtest/gtest.h>

#include <random>

namespace thimble {
namespace {

// Steps at random over a small arena, so that they collide often.
std::vector<CallUse> random_calls(uint32_t seed, size_t count) {
  std::mt19937 draw(seed);
  const auto ranges = [&](int most) {
    std::vector<ByteRange> result(draw() % static_cast<unsigned>(most + 1));
    for (ByteRange& range : result) {
      range.begin = static_cast<int64_t>(draw() % 60) * 64;
      range.end = range.begin + 1 + static_cast<int64_t>(draw() % 300);
    }
    return result;
  };
  std::vector<CallUse> calls(count);
  for (CallUse& call : calls) {
    call.reads = ranges(3);
    call.writes = ranges(2);
    call.seconds = 1 + static_cast<double>(draw() % 5);
  }
  return calls;
}

// For every call, those that are over before it begins: in the order of its stream, or waited for.
std::vector<std::vector<bool>> all_before(const std::vector<StreamCall>& order) {
  std::vector<std::vector<bool>> before(order.size(), std::vector<bool>(order.size(), false));
  for (size_t i = 0; i < order.size(); ++i) {
    const auto add = [&](size_t other) {
      before[i][other] = true;
      for (size_t k = 0; k < other; ++k) before[i][k] = before[i][k] || before[other][k];
    };
    for (const int other : order[i].waits_for) add(static_cast<size_t>(other));
    for (size_t other = i; other-- > 0;) {
      if (order[other].stream == order[i].stream) {
        add(other);
        break;
      }
    }
  }
  return before;
}

TEST(Streams, WhatTouchesTheSameBytesStaysInOrder) {
  for (const int streams : {1, 2, 3, 4, 7}) {
    for (uint32_t seed = 0; seed < 60; ++seed) {
      const std::vector<CallUse> calls = random_calls(seed, 80);
      const std::vector<StreamCall> order = spread_over_streams(calls, streams);
      ASSERT_EQ(order.size(), calls.size());
      const auto before = all_before(order);
      for (size_t i = 0; i < calls.size(); ++i) {
        ASSERT_TRUE(order[i].stream >= 0 && order[i].stream < streams);
        for (const int other : order[i].waits_for) {
          ASSERT_LT(other, static_cast<int>(i));
          EXPECT_NE(order[static_cast<size_t>(other)].stream, order[i].stream);
        }
        for (size_t k = 0; k < i; ++k) {
          if (conflict(calls[k], calls[i])) {
            EXPECT_TRUE(before[i][k]) << "call " << i << " may overtake " << k << ", seed " << seed;
          }
        }
      }
    }
  }
}

TEST(Streams, StepsThatShareNothingRunAtTheSameTime) {
  std::vector<CallUse> calls(3);
  for (int64_t i = 0; i < 3; ++i) {
    calls[static_cast<size_t>(i)] = {{{100, 200}}, {{1000 * (i + 1), 1000 * (i + 1) + 500}}, 1.0};
  }
  const std::vector<StreamCall> order = spread_over_streams(calls, 4);
  EXPECT_NE(order[0].stream, order[1].stream);
  EXPECT_NE(order[1].stream, order[2].stream);
  EXPECT_NE(order[0].stream, order[2].stream);
  for (const StreamCall& call : order) EXPECT_TRUE(call.waits_for.empty());
}

TEST(Streams, AChainStaysInOneStream) {
  std::vector<CallUse> calls;
  for (int64_t i = 0; i < 20; ++i) {
    calls.push_back({{{64 * i, 64 * i + 64}}, {{64 * i + 64, 64 * i + 128}}, 1.0});
  }
  for (const StreamCall& call : spread_over_streams(calls, 4)) {
    EXPECT_EQ(call.stream, 0);
    EXPECT_TRUE(call.waits_for.empty());
  }
}

TEST(Streams, JoinedStepsConflictWithWhatEitherDoes) {
  CallUse a = {{{0, 10}}, {{20, 30}}, 1.0};
  const CallUse b = {{{40, 50}}, {{60, 70}}, 2.0};
  EXPECT_FALSE(conflict(a, b));
  join(a, b);
  EXPECT_EQ(a.seconds, 3.0);
  EXPECT_TRUE(conflict(a, {{{65, 66}}, {}, 0}));
  EXPECT_TRUE(conflict(a, {{}, {{45, 46}}, 0}));
  EXPECT_FALSE(conflict(a, {{{0, 10}, {40, 50}}, {{30, 40}}, 0}));
}

}  // namespace
}  // namespace thimble
