#include "plan/schedule/place_updates.h"

#include <algorithm>

#include "graph/updates.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

const Attrs kPlain = {{"rule", "sgd_plain"}, {"weight_decay", 0.0}};

// Nodes of a schedule, in order.
std::vector<int32_t> order_of(const Schedule& schedule) {
  std::vector<int32_t> order;
  for (const Call& call : schedule.calls) order.push_back(call.node.index);
  return order;
}

// Two layers; the gradients of the second come first.
struct TwoLayers {
  Graph graph;
  ValueId w1, w2;
  enum : int32_t { forward1, forward2, back_w2, back_x, back_w1, update1, update2 };
};

TwoLayers make_two_layers() {
  TwoLayers net;
  Builder b(net.graph);
  const ValueId x = b.input("x", kSquare), g = b.input("g", kSquare);
  const ValueId rate = b.input("rate", {{1}, DType::f32});
  net.w1 = b.weight("w1", kSquare, {});
  net.w2 = b.weight("w2", kSquare, {});
  const ValueId h = b.op("matmul", {x, net.w1});
  const ValueId y = b.op("matmul", {h, net.w2});
  const ValueId g2 = b.op("matmul", {h, g});
  const ValueId gh = b.op("matmul", {g, net.w2});
  const ValueId g1 = b.op("matmul", {x, gh});
  b.op("update", {net.w1, g1, rate}, kPlain);
  b.op("update", {net.w2, g2, rate}, kPlain);
  net.graph.results = {y};
  verify_graph(net.graph);
  return net;
}

TEST(PlaceUpdates, RightBehindTheLastHazard) {
  const TwoLayers net = make_two_layers();
  // w2's gradient is complete after back_w2, but back_x still reads w2.
  EXPECT_EQ(order_of(place_updates(net.graph, forward_order(net.graph))),
            (std::vector<int32_t>{TwoLayers::forward1, TwoLayers::forward2, TwoLayers::back_w2,
                                  TwoLayers::back_x, TwoLayers::update2, TwoLayers::back_w1,
                                  TwoLayers::update1}));
}

TEST(PlaceUpdates, BehindRecomputationThatReadsTheOldWeight) {
  const TwoLayers net = make_two_layers();
  std::vector<Call> calls = forward_order(net.graph);
  calls.push_back({NodeId{TwoLayers::forward2}, true});  // reads w2 once more, at the very end
  const std::vector<int32_t> order = order_of(place_updates(net.graph, calls));
  EXPECT_EQ(order,
            (std::vector<int32_t>{TwoLayers::forward1, TwoLayers::forward2, TwoLayers::back_w2,
                                  TwoLayers::back_x, TwoLayers::back_w1, TwoLayers::update1,
                                  TwoLayers::forward2, TwoLayers::update2}));
}

TEST(PlaceUpdates, BehindReadersOfAViewOfTheWeight) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", kSquare), g = b.input("g", {{64}, DType::f32});
  const ValueId w = b.weight("w", {{64}, DType::f32}, {});
  const ValueId seen = b.op("reshape", {w}, {{"shape", std::vector<int64_t>{8, 8}}});  // 0
  graph.results = {b.op("matmul", {x, seen})};                                         // 1
  b.op("update", {w, g, b.input("rate", {{1}, DType::f32})}, kPlain);                  // 2
  verify_graph(graph);
  const Schedule schedule = place_updates(graph, forward_order(graph));
  EXPECT_EQ(order_of(schedule), (std::vector<int32_t>{0, 1, 2}));
  const Costs costs = flat_costs(graph);
  EXPECT_EQ(find_fault(graph, costs, lay_out({.graph = graph, .costs = costs}, schedule)),
            std::nullopt);
}

TEST(PlaceUpdates, StatisticsRunOnceDuringTheForwardPass) {
  const Case wrn = planned_model(small_wrn());
  std::vector<int> times(wrn.graph.nodes.size(), 0);
  size_t loss_at = 0, first_optimizer = wrn.plan.calls.size(), last_statistic = 0;
  for (size_t s = 0; s < wrn.plan.calls.size(); ++s) {
    const Node& node = wrn.graph[wrn.plan.calls[s].node];
    ++times[wrn.plan.calls[s].node.at()];
    if (node.op->name == "softmax_cross_entropy") loss_at = s;
    if (node.op->name == "update") first_optimizer = std::min(first_optimizer, s);
    if (node.op->name == "running_stats_update") last_statistic = s;
  }
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
  EXPECT_LT(last_statistic, loss_at);
  EXPECT_LT(loss_at, first_optimizer);
}

// The rule, checked slowly on real models: an update comes after everything that touches what it
// overwrites, and after the makers of what it reads. It comes right after one of them, or after
// another update that does.
void expect_earliest(const Graph& graph, const Schedule& schedule) {
  std::vector<ValueId> bytes(graph.values.size());  // the value whose bytes a view shows
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const NodeId producer = graph.values[v].producer;
    const bool view = producer.valid() && graph[producer].op->view;
    bytes[v] = view ? bytes[graph[producer].inputs[0].at()] : make_id<ValueId>(v);
  }
  for (size_t u = 0; u < schedule.calls.size(); ++u) {
    const Node& update = graph[schedule.calls[u].node];
    if (!is_update(update)) continue;
    size_t earliest = 0;
    for (size_t i = 0; i < update.inputs.size(); ++i) {
      const bool overwritten = std::ranges::any_of(
          updates_of(update), [&](const Alias& a) { return a.input == static_cast<int>(i); });
      bool made = false;
      for (size_t s = 0; s < schedule.calls.size(); ++s) {
        const Node& node = graph[schedule.calls[s].node];
        if (s == u) continue;
        const auto touches = [&](ValueId v) {
          return v.valid() && bytes[v.at()] == bytes[update.inputs[i].at()];
        };
        const bool makes = std::any_of(node.outputs.begin(), node.outputs.end(), touches);
        const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), touches) ||
                           std::any_of(node.accumulate.begin(), node.accumulate.end(), touches);
        if ((overwritten && (makes || reads)) || (makes && !made)) {
          EXPECT_LT(s, u) << node.name << " comes behind " << update.name;
          earliest = std::max(earliest, s + 1);
        }
        made |= makes;
      }
    }
    for (size_t s = earliest; s < u; ++s) {
      EXPECT_TRUE(is_update(graph[schedule.calls[s].node]))
          << update.name << " could run before " << graph[schedule.calls[s].node].name;
    }
  }
}

TEST(PlaceUpdates, EarliestOnRealModels) {
  for (const ModelOptions& options : {small_mlp(), small_wrn(), small_lstm()}) {
    SCOPED_TRACE(options.name);
    const Case model = planned_model(options);
    expect_earliest(model.graph, schedule_of(model.plan));
    expect_earliest(model.graph, schedule_of(recomputed(model, 5, 0.2).plan));
  }
}

TEST(PlaceUpdates, UpdatesOfTheEndPhaseStayThere) {
  Graph graph;
  Builder b(graph);
  const ValueId w = b.weight("w", kSquare, {});
  const ValueId x = b.input("x", kSquare), rate = b.input("rate", {{1}, DType::f32});
  b.set_phase(Phase::prologue);
  const ValueId zero = b.op("fill", {}, {{"shape", std::vector<int64_t>{8, 8}}, {"value", 0.0}});
  b.set_phase(Phase::per_microbatch);
  const ValueId sum = b.accumulate("copy", {x}, {}, {zero})[0];
  graph.results = {b.op("relu", {x})};
  b.set_phase(Phase::epilogue);
  b.op("update", {w, sum, rate}, kPlain);
  verify_graph(graph);
  // The gradient is complete behind node 1 of a turn, but there may be more turns.
  EXPECT_EQ(order_of(place_updates(graph, forward_order(graph))),
            (std::vector<int32_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace thimble
