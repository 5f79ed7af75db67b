#include "plan/bytes/peak.h"

#include <algorithm>
#include <set>

namespace thimble {

std::vector<LiveValue> live_at_peak(const Graph& graph, const Costs& costs, const Plan& plan) {
  const int peak = plan.peak_call;
  const int count = static_cast<int>(plan.calls.size());
  // By value: its copy at the peak.
  std::vector<int> made(graph.values.size(), -2);
  std::vector<int64_t> address(graph.values.size(), -1);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].producer.valid()) continue;
    made[v] = -1;
    address[v] = plan.sources[v].count;
  }
  for (int s = 0; s <= peak; ++s) {
    const PlannedCall& call = plan.calls[static_cast<size_t>(s)];
    const Node& node = graph[call.node];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      made[node.outputs[k].at()] = s;
      address[node.outputs[k].at()] = call.outputs[k].count;
    }
  }
  std::vector<int> last(graph.values.size(), -1);
  std::vector<bool> made_again(graph.values.size(), false);
  for (int s = peak; s < count; ++s) {
    const PlannedCall& call = plan.calls[static_cast<size_t>(s)];
    const Node& node = graph[call.node];
    const auto read = [&](ValueId value) {
      if (value.valid() && !made_again[value.at()]) last[value.at()] = s;
    };
    for (const ValueId input : node.inputs) read(input);
    for (const ValueId target : node.accumulate) read(target);
    if (s == peak) continue;
    for (const ValueId output : node.outputs) made_again[output.at()] = true;
  }
  for (const ValueId output : graph[plan.calls[static_cast<size_t>(peak)].node].outputs) {
    last[output.at()] = std::max(last[output.at()], peak);
  }

  std::vector<LiveValue> live;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool persistent = made[v] == -1 && is_persistent(value.role);
    if (made[v] == -2 || (last[v] < peak && !persistent)) continue;
    live.push_back({make_id<ValueId>(v), align_up(value.type.bytes()), made[v],
                    persistent ? count - 1 : last[v], -1});
  }
  std::stable_sort(live.begin(), live.end(),
                   [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
  std::set<int64_t> seen;
  std::erase_if(
      live, [&](const LiveValue& entry) { return !seen.insert(address[entry.value.at()]).second; });
  for (LiveValue& entry : live) {
    const NodeId maker = graph[entry.value].producer;
    if (!maker.valid() || graph[maker].backward || entry.made == peak) continue;
    if (graph[maker].op->recompute == Recompute::never) continue;
    entry.seconds_per_byte =
        costs.nodes[maker.at()].seconds / static_cast<double>(entry.bytes.count);
  }
  return live;
}

std::vector<ValueResidency> residencies_of(const Graph& graph, const Plan& plan) {
  std::vector<ValueResidency> residencies(graph.values.size(), ValueResidency::transient);
  for (const Node& node : graph.nodes) {
    if (!node.backward) continue;
    for (const ValueId input : node.inputs) residencies[input.at()] = ValueResidency::kept;
  }
  for (const PlannedCall& call : plan.calls) {
    if (!call.recompute) continue;
    for (const ValueId output : graph[call.node].outputs) {
      if (residencies[output.at()] == ValueResidency::kept)
        residencies[output.at()] = ValueResidency::recomputed;
    }
  }
  return residencies;
}

std::vector<int> recomputed_readers(const Graph& graph, const Plan& plan) {
  std::vector<bool> again(graph.nodes.size(), false);
  for (const PlannedCall& call : plan.calls) {
    if (call.recompute) again[call.node.at()] = true;
  }
  std::vector<int> readers(graph.values.size(), 0);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!again[n]) continue;
    for (const ValueId input : graph.nodes[n].inputs) ++readers[input.at()];
  }
  return readers;
}

}  // namespace thimble
