#include "graph/phases.h"

#include <algorithm>
#include <numeric>

namespace thimble {

namespace {

// `order`, by new place: the old one. Ids change accordingly.
void reorder(Graph& graph, const std::vector<size_t>& order) {
  std::vector<NodeId> now_at(order.size());  // by old place
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (size_t n = 0; n < order.size(); ++n) {
    now_at[order[n]] = make_id<NodeId>(n);
    nodes.push_back(std::move(graph.nodes[order[n]]));
  }
  graph.nodes = std::move(nodes);
  const auto follow = [&](NodeId& id) {
    if (id.valid()) id = now_at[id.at()];
  };
  for (Node& node : graph.nodes) follow(node.differentiates);
  for (Value& value : graph.values) follow(value.producer);
}

std::vector<size_t> as_they_are(const Graph& graph) {
  std::vector<size_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

}  // namespace

void sort_by_phase(Graph& graph) {
  std::vector<size_t> order = as_they_are(graph);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return graph.nodes[a].phase < graph.nodes[b].phase; });
  reorder(graph, order);
}

void insert_nodes(Graph& graph, size_t first, const std::vector<size_t>& slots) {
  const auto place = [&](size_t n) {
    return n < first ? std::pair(n, true) : std::pair(slots[n - first], false);
  };
  std::vector<size_t> order = as_they_are(graph);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return place(a) < place(b); });
  reorder(graph, order);
}

void hoist_nodes(Graph& graph, size_t first) {
  std::vector<size_t> slots;
  for (size_t n = first; n < graph.nodes.size(); ++n) {
    size_t slot = 0;
    const auto wait_for = [&](ValueId value) {
      if (!value.valid() || !graph[value].producer.valid()) return;
      const size_t maker = graph[value].producer.at();
      slot = std::max(slot, maker < first ? maker + 1 : slots[maker - first]);
    };
    for (const ValueId input : graph.nodes[n].inputs) wait_for(input);
    for (const ValueId target : graph.nodes[n].accumulate) wait_for(target);
    slots.push_back(slot);
  }
  insert_nodes(graph, first, slots);
}

}  // namespace thimble
