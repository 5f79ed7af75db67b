#include "plan/search/block_options.h"

#include <set>

#include "support/plan_cases.h"

namespace thimble {
namespace {

struct Study {
  explicit Study(const ModelOptions& options)
      : graph(make_training_graph(options, parse_optimizer("nesterov")).model.graph),
        costs(gather_costs(graph, *make_backend("null", 1))),
        pass(graph),
        blocks(cut_into_blocks(pass, costs)) {}

  bool inside(const Block& block, ValueId value) const {
    if (!pass.is_forward[value.at()]) return false;
    const int at = pass.made_at(value);
    return at >= block.begin && at < block.end;
  }

  // Seconds of the block's nodes that have to run before its gradients can, by trying: nodes run in
  // order of need until all is there.
  double seconds_to_have(const Block& block, std::set<ValueId> there,
                         const std::vector<ValueId>& wanted) const {
    double seconds = 0;
    const auto have = [&](auto&& self, ValueId value) -> void {
      if (!inside(block, value) || there.contains(value)) return;
      const NodeId maker = graph[value].producer;
      for (const ValueId input : graph[maker].inputs) self(self, input);
      seconds += costs.nodes[maker.at()].seconds;
      for (const ValueId output : graph[maker].outputs) there.insert(output);
    };
    for (const ValueId value : wanted) have(have, value);
    return seconds;
  }

  // The forward values that gradients of the block's nodes read.
  std::vector<ValueId> read_by_gradients(const Block& block) const {
    std::vector<ValueId> values;
    for (const NodeId id : pass.backward) {
      const NodeId of = graph[id].differentiates;
      const int at = of.valid() ? pass.position[of.at()] : -1;
      if (at < block.begin || at >= block.end) continue;
      for (const ValueId input : graph[id].inputs) {
        if (pass.is_forward[input.at()]) values.push_back(input);
      }
    }
    return values;
  }

  const Graph graph;
  const Costs costs;
  const ForwardPass pass;
  const std::vector<Block> blocks;
};

TEST(BlockOptions, SayWhatEachChoiceKeepsAndCosts) {
  for (const ModelOptions& options : {small_wrn(), small_resnet(), small_lstm()}) {
    const Study study(options);
    ASSERT_GT(study.blocks.size(), 2u);
    for (size_t b = 0; b < study.blocks.size(); ++b) {
      const Block& block = study.blocks[b];
      const std::vector<ValueId> inner = inner_values(study.pass, block);
      std::vector<ValueId> leaving;
      if (b + 1 < study.blocks.size()) {
        for (const ValueId value : study.blocks[b + 1].enters) {
          if (study.inside(block, value)) leaving.push_back(value);
        }
      }
      for (const BlockOption& option : block_options(study.pass, study.costs, study.blocks, b)) {
        SCOPED_TRACE(options.name + ", block " + std::to_string(b));
        std::set<ValueId> kept;
        Bytes bytes;
        for (const int i : option.kept) {
          kept.insert(inner[size_t(i)]);
          bytes += align_up(study.graph[inner[size_t(i)]].type.bytes());
        }
        EXPECT_EQ(option.kept_bytes, bytes);
        std::set<ValueId> with_leaving = kept;
        with_leaving.insert(leaving.begin(), leaving.end());
        EXPECT_NEAR(option.alone_seconds,
                    study.seconds_to_have(block, with_leaving, study.read_by_gradients(block)),
                    1e-12);
        EXPECT_NEAR(option.replay_seconds, study.seconds_to_have(block, kept, leaving), 1e-12);
      }
    }
  }
}

TEST(BlockOptions, ReachFromAllToNothingAndNoneIsWorseInBoth) {
  const Study study(small_wrn());
  for (size_t b = 0; b < study.blocks.size(); ++b) {
    const std::vector<BlockOption> options =
        block_options(study.pass, study.costs, study.blocks, b);
    ASSERT_FALSE(options.empty());
    EXPECT_EQ(options.back().alone_seconds, 0) << "block " << b;  // everything is kept
    for (size_t i = 1; i < options.size(); ++i) {
      EXPECT_GE(options[i].kept_bytes, options[i - 1].kept_bytes);
      const auto cost = [](const BlockOption& o) {
        return o.replay_seconds + o.after_replay_seconds;
      };
      EXPECT_TRUE(cost(options[i]) < cost(options[i - 1]) ||
                  options[i].alone_seconds < options[i - 1].alone_seconds);
    }
  }
}

TEST(BlockOptions, AreSharedByBlocksOfAKind) {
  const Study study({.name = "wrn-40-1", .batch = 4, .image = {8, 8, 1}});
  int pairs = 0;
  for (size_t b = 1; b + 2 < study.blocks.size(); ++b) {
    const auto same_kind = [&](size_t x, size_t y) {
      return study.blocks[x].kind == study.blocks[y].kind;
    };
    if (!same_kind(b, b + 1) || !same_kind(b + 1, b + 2)) continue;
    ++pairs;
    const auto one = block_options(study.pass, study.costs, study.blocks, b);
    const auto other = block_options(study.pass, study.costs, study.blocks, b + 1);
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].kept, other[i].kept);
      EXPECT_EQ(one[i].alone_bytes, other[i].alone_bytes);
      EXPECT_EQ(one[i].replay_bytes, other[i].replay_bytes);
      EXPECT_EQ(one[i].alone_seconds, other[i].alone_seconds);
    }
  }
  EXPECT_GT(pairs, 3);
}

}  // namespace
}  // namespace thimble
