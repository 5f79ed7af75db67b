#include "graph/order.h"

#include <algorithm>

namespace thimble {

void put_in_order(Graph& graph, const std::vector<NodeId>& order) {
  std::vector<NodeId> now_at(graph.nodes.size());  // by old place
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (size_t n = 0; n < order.size(); ++n) {
    now_at[order[n].at()] = make_id<NodeId>(n);
    nodes.push_back(std::move(graph[order[n]]));
  }
  graph.nodes = std::move(nodes);
  const auto follow = [&](NodeId& id) {
    if (id.valid()) id = now_at[id.at()];
  };
  for (Node& node : graph.nodes) follow(node.differentiates);
  for (Value& value : graph.values) follow(value.producer);
}

namespace {

std::vector<NodeId> as_they_are(const Graph& graph) {
  std::vector<NodeId> order;
  for (size_t n = 0; n < graph.nodes.size(); ++n) order.push_back(make_id<NodeId>(n));
  return order;
}

}  // namespace

void sort_by_phase(Graph& graph) {
  std::vector<NodeId> order = as_they_are(graph);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return graph[a].phase < graph[b].phase; });
  put_in_order(graph, order);
}

void insert_nodes(Graph& graph, size_t first, const std::vector<size_t>& slots) {
  const auto place = [&](NodeId n) {
    return n.at() < first ? std::pair(n.at(), true) : std::pair(slots[n.at() - first], false);
  };
  std::vector<NodeId> order = as_they_are(graph);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return place(a) < place(b); });
  put_in_order(graph, order);
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
