// Mirror counts: what is recomputed, how often, and when.
#include "plan/policy.h"
#include "plan/schedule/mirror_counts.h"
#include "plan/schedule/segments.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"

namespace thimble {
namespace {

// tanh after tanh; the gradient of each reads its result. Forward nodes come first in the graph, so
// position and node number are the same.
struct Chain {
  explicit Chain(int length) {
    Builder b(graph);
    ValueId x = b.input("x", kSquare);
    for (int i = 0; i < length; ++i) values.push_back(x = b.op("tanh", {x}));
    b.set_backward(true);
    ValueId g = b.input("g", kSquare);
    for (int i = length; i-- > 0;) {
      g = b.op("tanh_backward", {values[static_cast<size_t>(i)], g});
    }
    graph.results = {g};
    verify_graph(graph);
  }

  // One digit per node of the chain.
  MirrorCounts counts(std::string_view digits) const {
    MirrorCounts result(graph.values.size(), 0);
    for (size_t i = 0; i < digits.size(); ++i) result[values[i].at()] = digits[i] - '0';
    return result;
  }

  // The backward pass: forward nodes run again by number, gradients as G<number>.
  std::string backward_of(const Schedule& schedule) const {
    std::string text;
    for (size_t s = values.size(); s < schedule.calls.size(); ++s) {
      const size_t node = schedule.calls[s].node.at();
      const bool gradient = node >= values.size();
      EXPECT_EQ(schedule.calls[s].recompute, !gradient);
      text +=
          gradient ? fmt::format("G{} ", 2 * values.size() - 1 - node) : fmt::format("{} ", node);
    }
    return text;
  }

  std::string mirrored(std::string_view digits) const {
    const ForwardPass pass(graph);
    return backward_of(schedule_mirrored(pass, counts(digits)));
  }

  Graph graph;
  std::vector<ValueId> values;
};

TEST(Mirror, NothingMirroredIsTheOrdinaryStep) {
  EXPECT_EQ(Chain(5).mirrored("00000"), "G4 G3 G2 G1 G0 ");
}

TEST(Mirror, SegmentsAreRunAgainOnceJustBeforeTheirGradients) {
  EXPECT_EQ(Chain(7).mirrored("1101100"), "G6 G5 3 4 G4 G3 G2 0 1 G1 G0 ");
}

TEST(Mirror, OnlyWhatAGradientNeedsIsRunAgain) {
  // The last of a segment is what the kept one behind it is made from: no copy reads it.
  EXPECT_EQ(Chain(3).mirrored("110"), "G2 0 1 G1 G0 ");
  EXPECT_EQ(Chain(3).mirrored("101"), "2 G2 G1 0 G0 ");
}

TEST(Mirror, SegmentsOfSegmentsDropAndMakeAgain) {
  // Kept: 5. In front of it 2 is kept while the segment goes backward; 0 1 and 3 4 are made from
  // what is before them: 0 and 1 twice, once to get at 2.
  EXPECT_EQ(Chain(6).mirrored("221220"), "G5 0 1 2 3 4 G4 G3 G2 0 1 G1 G0 ");
}

TEST(Mirror, ThreeLevels) {
  // Copy 1 of everything leads to 7, copy 2 of the first half to 3. Copy 3 is made from that.
  EXPECT_EQ(Chain(8).mirrored("33323331"),
            "0 1 2 3 4 5 6 7 G7 0 1 2 3 4 5 6 G6 G5 G4 G3 0 1 2 G2 G1 G0 ");
}

TEST(Mirror, CountsOfZeroAndOneAreWhatKeepingMeans) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomStep call = random_step(seed);
    const ForwardPass pass(call.graph);
    std::mt19937 random(seed);
    MirrorCounts counts(call.graph.values.size());
    std::vector<bool> kept(call.graph.values.size());
    for (size_t v = 0; v < counts.size(); ++v) {
      counts[v] = static_cast<int>(random() % 2);
      kept[v] = counts[v] == 0;
    }
    // A view stays with what it shows, whatever was drawn for it.
    for (const NodeId id : pass.nodes) {
      const Node& node = call.graph[id];
      if (node.op->view) kept[node.outputs[0].at()] = true;
    }
    EXPECT_EQ(schedule_mirrored(pass, counts), schedule_keeping(pass, kept)) << seed;
  }
}

TEST(Mirror, AnyCountsGiveSoundPlans) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomStep call = random_step(seed);
    const Costs costs = flat_costs(call.graph, Bytes(100));
    const ForwardPass pass(call.graph);
    std::mt19937 random(seed);
    MirrorCounts counts(call.graph.values.size());
    for (int& count : counts) count = static_cast<int>(random() % 5);
    const Plan plan =
        lay_out({.graph = call.graph, .costs = costs}, schedule_mirrored(pass, counts));
    EXPECT_EQ(find_fault(call.graph, costs, plan), std::nullopt) << seed;
  }
}

TEST(Mirror, MarksComeFirst) {
  Chain chain(4);
  chain.graph.nodes[1].mark = Mark::keep;
  chain.graph.nodes[3].mark = Mark::recompute;
  EXPECT_EQ(chain.mirrored("2220"), "2 3 G3 2 G2 G1 0 G0 ");
}

TEST(Mirror, SegmentsOfABlockChainNest) {
  const Chain chain(16);
  const ForwardPass pass(chain.graph);
  std::vector<Block> blocks;
  for (int p = 0; p < 16; ++p) {
    Block block;
    block.begin = p, block.end = p + 1;
    if (p > 0) block.enters = {chain.values[static_cast<size_t>(p) - 1]};
    blocks.push_back(block);
  }
  const MirrorCounts one = mirror_segments(pass, blocks, {{4, 8, 12}});
  const MirrorCounts two = mirror_segments(pass, blocks, {{8}, {4, 8, 12}});
  std::string first, second;
  for (const ValueId value : chain.values) {
    first += std::to_string(one[value.at()]);
    second += std::to_string(two[value.at()]);
  }
  EXPECT_EQ(first, "1110111011101111");
  EXPECT_EQ(second, "2221222022212222");
}

// Two levels hold less than one on a deep chain, for about one more forward pass.
TEST(Mirror, TwoLevelsHoldLessOnADeepChain) {
  const Chain chain(1000);
  const ForwardPass pass(chain.graph);
  const Costs costs = flat_costs(chain.graph);
  const auto plan = [&](int outer, int inner) {
    MirrorCounts counts = chain.counts("");
    for (int i = 0; i < 1000; ++i) {
      counts[chain.values[static_cast<size_t>(i)].at()] = (i + 1) % outer == 0   ? 0
                                                          : (i + 1) % inner == 0 ? 1
                                                          : outer == inner       ? 1
                                                                                 : 2;
    }
    return lay_out({.graph = chain.graph, .costs = costs}, schedule_mirrored(pass, counts));
  };
  const Plan one = plan(32, 32), two = plan(100, 10);
  EXPECT_LE(one.peak_live.count, 70 * kSquare.bytes().count);
  EXPECT_LE(two.peak_live.count, 40 * kSquare.bytes().count);
  EXPECT_LE(one.extra_flops, 1000);
  EXPECT_LE(two.extra_flops, 2000);
  EXPECT_GT(two.extra_flops, one.extra_flops);
}

}  // namespace
}  // namespace thimble
