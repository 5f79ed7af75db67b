#include "graph/phases.h"

#include <algorithm>
#include <numeric>

namespace thimble {

void reorder_nodes(Graph& graph, const std::vector<size_t>& order) {
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

void sort_by_phase(Graph& graph) {
  std::vector<size_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return graph.nodes[a].phase < graph.nodes[b].phase; });
  reorder_nodes(graph, order);
}

}  // namespace thimble
