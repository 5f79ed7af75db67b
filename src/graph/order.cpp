#include "graph/order.h"

#include <algorithm>

namespace thimble {

void put_in_order(Graph& graph, const std::vector<NodeId>& order) {
  std::vector<NodeId> now_at(order.size());  // by old place
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

void sort_by_phase(Graph& graph) {
  std::vector<NodeId> order;
  for (size_t n = 0; n < graph.nodes.size(); ++n) order.push_back(make_id<NodeId>(n));
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return graph[a].phase < graph[b].phase; });
  put_in_order(graph, order);
}

}  // namespace thimble
