#include "plan/verify/verify_shared_step.h"

#include <fmt/format.h>

#include <map>

namespace thimble {
namespace {

// What a plan keeps from one microbatch to the next.
struct CarriedValue {
  int64_t at = 0;
  int64_t size = 0;
  bool constant = false;
};

std::map<std::string, CarriedValue> carried_values(const Graph& graph, const Plan& plan) {
  std::map<std::string, CarriedValue> values;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    values[value.name] = {plan.sources[v].count, value.type.bytes().count,
                          value.role == Role::constant};
  }
  for (const PlannedCall& call : plan.calls) {
    const Node& node = graph[call.node];
    for (size_t k = 0; k < node.outputs.size() && node.phase == Phase::begin; ++k) {
      const Value& value = graph[node.outputs[k]];
      values[value.name] = {call.outputs[k].count, value.type.bytes().count, false};
    }
  }
  return values;
}

// Whether anything of the plan lies over those bytes.
bool writes_into(const Graph& graph, const Plan& plan, const CarriedValue& kept) {
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
  const auto here = carried_values(graph, plan);
  const auto there = carried_values(other_graph, other);
  for (const auto& [name, kept] : here) {
    const auto twin = there.find(name);
    if (twin == there.end() ? !kept.constant || writes_into(other_graph, other, kept)
                            : twin->second.at != kept.at || twin->second.size != kept.size) {
      return fmt::format("'{}' is carried from microbatch to microbatch, but not by both plans",
                         name);
    }
  }
  for (const auto& [name, kept] : there) {
    if (here.count(name) == 0 && !kept.constant) return fmt::format("'{}' is carried by one", name);
  }
  return std::nullopt;
}

}  // namespace thimble
