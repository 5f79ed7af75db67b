// Cases that tests of plans share: small graphs written by hand, costs without a device, schedules with
// recomputation, and real models planned for the `null` backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "execute/costs.h"
#include "graph/builder.h"
#include "pipeline/pipeline.h"
#include "plan/make_plan.h"
#include "plan/schedule/place_updates.h"
#include "plan/verify/verify_plan.h"

namespace thimble {

inline const TensorType kRow = {{16}, DType::f32};       // 64 bytes: one unit of the arena
inline const TensorType kSquare = {{8, 8}, DType::f32};  // 256 bytes

// Every node takes a second and a flop; scratch as asked for.
inline Costs flat_costs(const Graph& graph, Bytes workspace = {}) {
  Costs costs;
  costs.source = "flat";
  costs.nodes.assign(graph.nodes.size(), NodeCost{1, 1, workspace});
  return costs;
}

// The calls of keep_all without its updates.
inline std::vector<Call> forward_order(const Graph& graph) {
  std::vector<Call> calls;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_update(graph.nodes[n])) calls.push_back({make_id<NodeId>(n), false});
  }
  return calls;
}

// keep_all with some forward nodes recomputed: before a call, with probability `chance`, what
// makes one of its inputs is repeated, and what makes that one's inputs before it, up to `depth`.
inline Schedule with_recomputation(const Graph& graph, std::mt19937& random, double chance,
                                   int depth = 2) {
  std::vector<Call> calls;
  std::vector<bool> made(graph.nodes.size(), false);
  const auto repeat = [&](auto&& self, NodeId id, int left) -> void {
    const Node& node = graph[id];
    if (node.backward || node.op->recompute == Recompute::never || !node.accumulate.empty()) return;
    for (const ValueId input : node.inputs) {
      const NodeId producer = graph[input].producer;
      if (producer.valid() && left > 0 && random() % 2 == 0) self(self, producer, left - 1);
    }
    calls.push_back({id, true});
  };
  for (const Call& call : forward_order(graph)) {
    for (const ValueId input : graph[call.node].inputs) {
      const NodeId producer = graph[input].producer;
      const bool chosen = std::uniform_real_distribution<>(0, 1)(random) < chance;
      if (chosen && producer.valid() && made[producer.at()]) repeat(repeat, producer, depth);
    }
    calls.push_back(call);
    made[call.node.at()] = true;
  }
  return place_updates(graph, calls);
}

// A graph with its costs and a plan of it.
struct Case {
  std::string name;
  Graph graph;
  Costs costs;
  Plan plan;
};

inline Case planned_model(const ModelOptions& options, const OptimizerSpec& optimizer,
                          int microbatches = 1) {
  Case result;
  result.name = options.name;
  if (microbatches > 1) result.name += " in microbatches";
  if (optimizer.fold) result.name += " with folded gradients";
  result.graph = make_training_graph(options, optimizer, {}, microbatches).model.graph;
  result.costs = gather_costs(result.graph, *make_backend("cpu", 1));
  result.plan = std::get<Plan>(
      make_plan({.graph = result.graph, .costs = result.costs, .microbatches = microbatches}));
  return result;
}

inline Case planned_model(const ModelOptions& options, const std::string& optimizer = "nesterov",
                          int microbatches = 1) {
  return planned_model(options, parse_optimizer(optimizer), microbatches);
}

// The same graph under a schedule that computes about one input in `1 / chance` again.
inline Case recomputed(const Case& from, uint32_t seed, double chance) {
  std::mt19937 random(seed);
  Case result = from;
  result.name += " with recomputation";
  result.plan =
      lay_out({.graph = from.graph, .costs = from.costs, .microbatches = from.plan.microbatches},
              with_recomputation(from.graph, random, chance));
  return result;
}

inline ModelOptions small_mlp() {
  return {.name = "mlp:layers=2,hidden=24", .batch = 8, .dropout = 0.25};
}
inline ModelOptions small_wrn() { return {.name = "wrn-10-1", .batch = 4, .image = {8, 8, 1}}; }
inline OptimizerSpec folded_sgd() {
  OptimizerSpec spec = parse_optimizer("sgd");
  spec.fold = true;
  return spec;
}
inline ModelOptions small_resnet() {
  return {.name = "resnet:[1,1,1,1]", .batch = 2, .image = {32, 32, 3}, .classes = 10};
}
inline ModelOptions small_unet() {
  return {.name = "unet:layers=2,hidden=4", .batch = 2, .image = {8, 8, 3}};
}
inline ModelOptions small_lstm() {
  return {.name = "lstm:layers=2,hidden=16,length=5", .batch = 4};
}

inline ModelOptions small_lstm_runs() {
  ModelOptions options = small_lstm();
  options.name += ",steps-at-once=2";  // of 5 time steps
  return options;
}

inline ModelOptions with_norm(ModelOptions options, Norm norm) {
  options.norm = norm;
  return options;
}

// Steps whose middle runs several times.
inline std::vector<Case> looped_cases() {
  std::vector<Case> cases = {planned_model(small_wrn(), "nesterov", 3),
                             planned_model(small_lstm(), "adam", 2),
                             planned_model(small_mlp(), folded_sgd(), 4),
                             planned_model(with_norm(small_wrn(), Norm::carried), folded_sgd(), 2)};
  for (size_t i = 0; i < 4; ++i) cases.push_back(recomputed(cases[i], 5, 0.15));
  return cases;
}

inline size_t any(std::mt19937& random, size_t count) { return random() % count; }

// A random call for which `suits` holds, or none.
template <class Suits>
std::optional<size_t> pick(const Plan& plan, std::mt19937& random, Suits&& suits) {
  std::vector<size_t> candidates;
  for (size_t s = 0; s < plan.calls.size(); ++s) {
    if (suits(s)) candidates.push_back(s);
  }
  if (candidates.empty()) return std::nullopt;
  return candidates[any(random, candidates.size())];
}

}  // namespace thimble
