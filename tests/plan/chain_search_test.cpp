#include "plan/search/chain_search.h"

#include <gtest/gtest.h>

#include <random>

namespace thimble {
namespace {

// A made-up chain: what the search is given, nothing of a graph behind it.
struct Chain {
  explicit Chain(uint32_t seed) {
    std::mt19937 random(seed);
    const auto bytes = [&](int most) { return Bytes(64 * int64_t(1 + random() % unsigned(most))); };
    const auto seconds = [&] { return double(1 + random() % 20); };
    const size_t count = 2 + random() % 4;
    kinds.resize(count);
    for (size_t b = 0; b < count; ++b) {
      Block block;
      block.entering = b == 0 ? Bytes() : bytes(8);
      block.made = bytes(40);
      block.seconds = seconds();
      blocks.push_back(block);
      for (size_t o = 0; o < 1 + random() % 3; ++o) {
        BlockOption option;
        option.kept_bytes = bytes(30);
        option.replay_bytes = bytes(10);
        option.after_replay_bytes = bytes(20);
        option.alone_bytes = bytes(20);
        option.replay_seconds = seconds();
        option.after_replay_seconds = seconds();
        option.alone_seconds = seconds();
        kinds[b].push_back(option);
      }
    }
    for (const auto& kind : kinds) options.push_back(&kind);
  }

  std::vector<Block> blocks;
  std::vector<std::vector<BlockOption>> kinds;
  std::vector<const std::vector<BlockOption>*> options;
};

// The model of the header, segment by segment: what earlier segments keep stays. Inside a segment,
// recomputed values pile up, with those that leave each block. The fullest moment counts.
ChainPoint reckoned(const Chain& chain, const std::vector<BlockChoice>& choices) {
  ChainPoint point;
  point.choices = choices;
  Bytes before;  // kept by all blocks so far, and at the cuts between segments
  size_t begin = 0;
  for (size_t end = 0; end < choices.size(); ++end) {
    if (!choices[end].ends_segment) continue;
    Bytes inside;  // brought back by the segment's replay
    for (size_t b = begin; b <= end; ++b) {
      const BlockOption& option = chain.kinds[b][size_t(choices[b].option)];
      const bool last = b == end;
      before += option.kept_bytes;
      if (!last) inside += option.replay_bytes;
      const Bytes needs = last ? option.alone_bytes : option.after_replay_bytes;
      point.peak = std::max(point.peak, before + inside + needs);
      point.seconds +=
          last ? option.alone_seconds : option.replay_seconds + option.after_replay_seconds;
      const Bytes leaves = b + 1 < chain.blocks.size() ? chain.blocks[b + 1].entering : Bytes();
      (last ? before : inside) += leaves;
    }
    begin = end + 1;
  }
  return point;
}

// Every way to choose, the last block always ending a segment.
std::vector<ChainPoint> all_points(const Chain& chain) {
  std::vector<ChainPoint> points;
  std::vector<BlockChoice> choices(chain.blocks.size());
  const auto choose = [&](auto&& self, size_t b) -> void {
    if (b == choices.size()) {
      points.push_back(reckoned(chain, choices));
      return;
    }
    for (int o = 0; o < int(chain.kinds[b].size()); ++o) {
      for (const bool ends : {true, false}) {
        if (!ends && b + 1 == choices.size()) continue;
        choices[b] = {o, ends};
        self(self, b + 1);
      }
    }
  };
  choose(choose, 0);
  return points;
}

double fastest_within(const std::vector<ChainPoint>& points, Bytes peak) {
  double best = 1e300;
  for (const ChainPoint& point : points) {
    if (point.peak <= peak) best = std::min(best, point.seconds);
  }
  return best;
}

TEST(ChainSearch, SaysOfItsPointsWhatTheModelSays) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Chain chain(seed);
    const std::vector<ChainPoint> frontier = chain_frontier(chain.blocks, chain.options);
    ASSERT_FALSE(frontier.empty());
    for (const ChainPoint& point : frontier) {
      ASSERT_TRUE(point.choices.back().ends_segment);
      const ChainPoint expected = reckoned(chain, point.choices);
      ASSERT_EQ(point.peak, expected.peak) << "seed " << seed;
      ASSERT_DOUBLE_EQ(point.seconds, expected.seconds) << "seed " << seed;
    }
    for (size_t i = 1; i < frontier.size(); ++i) {  // from most memory to least, none worse in both
      ASSERT_LT(frontier[i].peak, frontier[i - 1].peak);
      ASSERT_GT(frontier[i].seconds, frontier[i - 1].seconds);
    }
  }
}

// Against every choice there is. The search asks for least time at a price of kept bytes and a
// room of each segment, so that a point between two prices may be missed: most are not.
TEST(ChainSearch, FindsNearlyEveryPointOfSmallChains) {
  int points = 0, missed = 0;
  double worst = 1;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Chain chain(seed);
    const std::vector<ChainPoint> all = all_points(chain);
    const std::vector<ChainPoint> frontier = chain_frontier(chain.blocks, chain.options);
    for (const ChainPoint& point : all) {
      if (fastest_within(all, point.peak - Bytes(1)) <= point.seconds) continue;  // dominated
      if (fastest_within(all, point.peak) < point.seconds) continue;
      ++points;
      const double found = fastest_within(frontier, point.peak);
      EXPECT_GE(found, point.seconds);
      if (found > point.seconds) ++missed;
      if (found < 1e300) worst = std::max(worst, found / point.seconds);
    }
  }
  RecordProperty("points", points);
  RecordProperty("missed", missed);
  EXPECT_GT(points, 800);
  EXPECT_LT(missed, points / 4) << "of " << points << ", worst " << worst;
  EXPECT_LT(worst, 2);
}

}  // namespace
}  // namespace thimble
