// Which weights keep their state in 8 bits: those that fill a block of codes.
#include "transform/block_state.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/number/dynamic_quantization.h"
#include "graph/builder.h"
#include "transform/optimizer.h"

namespace thimble {
namespace {

TEST(BlockState, IsOfWeightsThatFillABlock) {
  for (const char* optimizer : {"adam", "sgd"}) {
    for (const int64_t elements : {int64_t{1}, kCodeBlock - 1, kCodeBlock, kCodeBlock + 1}) {
      SCOPED_TRACE(fmt::format("{} of {}", optimizer, elements));
      Graph graph;
      Builder b(graph);
      const ValueId w = b.weight("w", {{elements}}, {});
      const ValueId g = b.input("g", {{elements}});
      OptimizerSpec spec = parse_optimizer(optimizer);
      spec.state_bits = 8;
      add_updates(graph, {&w, 1}, {&g, 1}, spec);
      const bool coded = elements >= kCodeBlock;
      int64_t state = 0;
      for (const Value& value : graph.values) {
        if (value.role != Role::optimizer_state || value.producer.valid()) continue;
        state += value.type.bytes().count;
        const bool scales = value.name.ends_with(".scales");
        EXPECT_EQ(value.type.dtype == DType::u8, coded && !scales) << value.name;
      }
      // A byte an element and four a block, or four an element.
      const int64_t blocks = (elements + kCodeBlock - 1) / kCodeBlock;
      const int64_t states = std::string_view(optimizer) == "adam" ? 2 : 1;
      EXPECT_EQ(state, states * (coded ? elements + 4 * blocks : 4 * elements));
      const auto updates = std::ranges::count_if(
          graph.nodes, [](const Node& node) { return node.op->name == "update_8bit"; });
      EXPECT_EQ(updates, coded ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace thimble
