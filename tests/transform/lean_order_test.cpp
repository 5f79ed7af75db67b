#include <gtest/gtest.h>

#include <cstring>

#include "graph/builder.h"
#include "graph/order.h"
#include "plan/schedule/recompute.h"
#include "support/interpreter.h"
#include "support/plan_cases.h"
#include "support/random_steps.h"
#include "transform/peak_reducing_order.h"

namespace thimble {
namespace {

Bytes live_peak_of(const Graph& graph) {
  const Costs costs = flat_costs(graph);
  const PlanRequest request = {.graph = graph, .costs = costs};
  return cost_of(request, schedule_without_recompute(request)).live_peak;
}

// Three branches that widen and narrow again, all widened first: one at a time holds two fewer.
TEST(LeanOrder, FinishesABranchBeforeTheNext) {
  Graph graph;
  Builder b(graph);
  const TensorType narrow = {{1, 8, 8, 4}, DType::f32};
  const ValueId x = b.input("x", narrow);
  std::vector<ValueId> wide;
  for (int i = 0; i < 3; ++i) wide.push_back(b.op("upsample2d", {x}, {{"factor", int64_t{2}}}));
  ValueId sum;
  for (const ValueId value : wide) {
    const ValueId pooled =
        b.op("avg_pool", {value}, {{"kernel", int64_t{2}}, {"stride", int64_t{2}}});
    sum = sum.valid() ? b.op("add", {sum, pooled}) : pooled;
  }
  graph.results = {sum};
  const Bytes before = live_peak_of(graph);
  put_in_order(graph, peak_reducing_order(graph));
  verify_graph(graph);
  const Bytes wide_bytes = align_up(graph[wide[0]].type.bytes());
  const Bytes narrow_bytes = align_up(narrow.bytes());
  EXPECT_EQ(before, narrow_bytes + wide_bytes + wide_bytes + wide_bytes);
  // x, the first result, and the second branch as it narrows.
  EXPECT_EQ(live_peak_of(graph), narrow_bytes + narrow_bytes + wide_bytes + narrow_bytes);
}

TEST(LeanOrder, IsWellFormedOnTheZoo) {
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_resnet(), small_lstm()}) {
    for (const int microbatches : {1, 3}) {
      Graph graph =
          make_training_graph(options, parse_optimizer("sgd"), {}, microbatches).model.graph;
      const size_t nodes = graph.nodes.size();
      put_in_order(graph, peak_reducing_order(graph));
      ASSERT_EQ(graph.nodes.size(), nodes);
      EXPECT_NO_THROW(verify_graph(graph)) << options.name;
    }
  }
}

// Slices of a sequence could all be taken first, and the sequence be gone; but then they would all
// cross every cut between time steps.
TEST(LeanOrder, LeavesRecurrentNetsEasyToCut) {
  for (const int64_t hidden : {16, 64}) {
    const ModelOptions lstm = {.name = fmt::format("lstm:layers=1,hidden={},length=100", hidden),
                               .batch = 16};
    const Graph graph = make_training_graph(lstm, parse_optimizer("sgd")).model.graph;
    const Costs costs = flat_costs(graph);
    const auto arena = [&](const char* policy) {
      return std::get<Plan>(make_plan({.graph = graph, .costs = costs, .policy = policy})).arena;
    };
    EXPECT_LT(arena("sqrt_segments").count * 2, arena("keep_all").count) << hidden;
  }
}

// Another order, the same bits.
TEST(LeanOrder, ChangesNoBit) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const RandomStep step = random_step(seed);
    Graph other = step.graph;
    put_in_order(other, peak_reducing_order(step.graph));
    verify_graph(other);
    Interpreter plain(step.graph), reordered(other);
    for (Interpreter* run : {&plain, &reordered}) {
      fill_inputs(step.graph, step.rng, 0,
                  [&](ValueId value, const Tensor& tensor) { (*run)[value] = tensor; });
      run->run();
    }
    for (size_t v = 0; v < other.values.size(); ++v) {
      const ValueId value = make_id<ValueId>(v);
      ASSERT_EQ(std::memcmp(plain[value].ref().data, reordered[value].ref().data,
                            static_cast<size_t>(other[value].type.bytes().count)),
                0)
          << "seed " << seed << ", " << other[value].name;
    }
  }
}

}  // namespace
}  // namespace thimble
