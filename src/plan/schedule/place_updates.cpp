#include "plan/schedule/place_updates.h"

#include <algorithm>

#include "base/error.h"
#include "graph/updates.h"

namespace thimble {

bool is_update(const Node& node) { return !node.op->updates.empty(); }

Schedule place_updates(const Graph& graph, const std::vector<Call>& calls) {
  // By value: the one whose bytes it shows, itself unless it is a view.
  std::vector<size_t> bytes_of(graph.values.size());
  for (size_t v = 0; v < bytes_of.size(); ++v) {
    const NodeId producer = graph.values[v].producer;
    const bool view = producer.valid() && graph[producer].op->view;
    bytes_of[v] = view && graph[producer].outputs[0] == make_id<ValueId>(v)
                      ? bytes_of[graph[producer].inputs[0].at()]
                      : v;
  }
  // By value: the last call that makes or reads its bytes; -1 for values present at the start.
  std::vector<int> last_touch(graph.values.size(), -1);
  std::vector<int> first_made(graph.values.size(), -1);
  std::vector<int> phase_start = {0, static_cast<int>(calls.size()),
                                  static_cast<int>(calls.size())};
  for (size_t s = 0; s < calls.size(); ++s) {
    const Node& node = graph[calls[s].node];
    const int now = static_cast<int>(s);
    for (const ValueId input : node.inputs) last_touch[bytes_of[input.at()]] = now;
    for (const ValueId target : node.accumulate) {
      if (target.valid()) last_touch[bytes_of[target.at()]] = now;
    }
    for (const ValueId output : node.outputs) {
      last_touch[bytes_of[output.at()]] = now;
      if (first_made[output.at()] < 0) first_made[output.at()] = now;
    }
    for (int p = 0; p <= static_cast<int>(node.phase); ++p) {
      phase_start[static_cast<size_t>(p)] = std::min(phase_start[static_cast<size_t>(p)], now);
    }
  }
  // after[s]: updates that run right behind call s - 1, in graph order.
  std::vector<std::vector<NodeId>> after(calls.size() + 1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!is_update(node)) continue;
    int at = node.phase == Phase::epilogue         ? phase_start[2]
             : node.phase == Phase::per_microbatch ? phase_start[1]
                                                   : 0;
    // An input that it overwrites must have had its last reader, and any other must be made.
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool overwritten = std::ranges::any_of(
          updates_of(node), [&](const Alias& u) { return u.input == static_cast<int>(i); });
      const size_t input = node.inputs[i].at();
      at = std::max(at, (overwritten ? last_touch[bytes_of[input]] : first_made[input]) + 1);
    }
    after[static_cast<size_t>(at)].push_back(make_id<NodeId>(n));
    // Another update may go on from there, in graph order.
    for (const ValueId output : node.outputs) {
      first_made[output.at()] = at - 1;
      last_touch[output.at()] = std::max(last_touch[output.at()], at - 1);
    }
  }
  Schedule schedule;
  for (size_t s = 0; s <= calls.size(); ++s) {
    for (const NodeId update : after[s]) schedule.calls.push_back({update, false});
    if (s < calls.size()) schedule.calls.push_back(calls[s]);
  }
  return schedule;
}

}  // namespace thimble
