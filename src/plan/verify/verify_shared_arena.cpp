#include "plan/verify/verify_shared_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// A value that a plan keeps from one run of its loop to the next.
struct KeptValue {
  int64_t at = 0;
  int64_t size = 0;
  bool constant = false;
};

std::map<std::string, KeptValue> kept_values(const Graph& graph, const Plan& plan, bool with_sums) {
  std::map<std::string, KeptValue> values;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    values[value.name] = {plan.sources[v].count, value.type.bytes().count,
                          value.role == Role::constant};
  }
  for (const PlannedCall& call : plan.calls) {
    const Node& node = graph[call.node];
    if (!with_sums || node.phase != Phase::prologue) continue;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const Value& value = graph[node.outputs[k]];
      values[value.name] = {call.outputs[k].count, value.type.bytes().count, false};
    }
  }
  return values;
}

// Whether anything of the plan lies over those bytes.
bool writes_into(const Graph& graph, const Plan& plan, const KeptValue& kept) {
  const auto hits = [&](Bytes at, int64_t size) {
    return at.count < kept.at + kept.size && kept.at < at.count + size;
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const int64_t size = graph.values[v].type.bytes().count;
    if (plan.sources[v].count >= 0 && hits(plan.sources[v], size)) return true;
  }
  for (const PlannedCall& call : plan.calls) {
    const Node& node = graph[call.node];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (hits(call.outputs[k], graph[node.outputs[k]].type.bytes().count)) return true;
    }
    if (call.workspace_size.count > 0 && hits(call.workspace_at, call.workspace_size.count)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> find_disagreement(const Graph& graph, const Plan& plan,
                                             const Graph& other_graph, const Plan& other) {
  const bool one_step = std::any_of(other_graph.nodes.begin(), other_graph.nodes.end(),
                                    [](const Node& node) { return node.phase == Phase::prologue; });
  const auto here = kept_values(graph, plan, one_step);
  const auto there = kept_values(other_graph, other, one_step);
  for (const auto& [name, kept] : here) {
    const auto twin = there.find(name);
    if (twin != there.end()) {
      if (twin->second.at == kept.at && twin->second.size == kept.size) continue;
      return fmt::format("'{}' is kept at other bytes", name);
    }
    if (one_step && !kept.constant) return fmt::format("'{}' is carried by one alone", name);
    if (writes_into(other_graph, other, kept)) return fmt::format("'{}' is overwritten", name);
  }
  for (const auto& [name, kept] : there) {
    if (here.count(name) == 0 && !kept.constant) {
      return fmt::format("'{}' is kept by the second alone", name);
    }
  }
  return std::nullopt;
}

}  // namespace thimble
