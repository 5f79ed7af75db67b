#include "transform/fuse_loss_into_backward.h"

#include <algorithm>
#include <ranges>

#include "graph/order.h"

namespace thimble {
namespace {

// By value: whether a backward node depends on it.
std::vector<bool> reaching_backward(const Graph& graph) {
  std::vector<bool> reaches(graph.values.size(), false);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const bool needed = node.backward || std::ranges::any_of(node.outputs, [&](ValueId v) {
                          return reaches[v.at()];
                        });
    if (!needed) continue;
    for (const ValueId input : node.inputs) reaches[input.at()] = true;
    for (const ValueId target : node.accumulate) {
      if (target.valid()) reaches[target.at()] = true;
    }
  }
  return reaches;
}

// The forward node that makes the latest of what a node reads.
NodeId latest_maker(const Graph& graph, const Node& node) {
  NodeId latest;
  for (const ValueId input : node.inputs) {
    const NodeId maker = graph[input].producer;
    if (maker.valid() && !graph[maker].backward && (!latest.valid() || latest < maker)) {
      latest = maker;
    }
  }
  return latest;
}

void take_over(Graph& graph, NodeId gradient, NodeId forward) {
  Node& node = graph[gradient];
  node.attrs.set("takes_over", int64_t{1});
  for (const ValueId output : graph[forward].outputs) {
    node.outputs.push_back(output);
    graph[output].producer = gradient;
  }
  if (!node.accumulate.empty()) node.accumulate.resize(node.outputs.size());
  node.differentiates = latest_maker(graph, node);
}

// Lists nodes in their order, but those that wait for a later one right behind it.
class Order {
 public:
  explicit Order(const Graph& graph)
      : graph_(graph), readers_(readers_of(graph)), listed_(graph.nodes.size(), false) {}

  void add(NodeId first) {
    std::vector<NodeId> next = {first};  // the last of them first: chains are as long as sequences
    while (!next.empty()) {
      const NodeId id = next.back();
      next.pop_back();
      if (listed_[id.at()] || !is_ready(graph_[id])) continue;
      listed_[id.at()] = true;
      order_.push_back(id);
      for (const ValueId output : std::views::reverse(graph_[id].outputs)) {
        for (const NodeId reader : std::views::reverse(readers_[output.at()])) {
          if (reader < first) next.push_back(reader);  // was passed by, waiting
        }
      }
    }
  }
  const std::vector<NodeId>& order() const { return order_; }

 private:
  bool is_ready(const Node& node) const {
    const auto made = [&](ValueId value) {
      return !graph_[value].producer.valid() || listed_[graph_[value].producer.at()];
    };
    return std::ranges::all_of(node.inputs, made);
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> listed_;
  std::vector<NodeId> order_;
};

}  // namespace

void fuse_loss_into_backward(Graph& graph) {
  const std::vector<bool> reaches = reaching_backward(graph);
  std::vector<bool> gone(graph.nodes.size(), false), late(graph.values.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeId forward = graph.nodes[n].differentiates;
    if (!graph.nodes[n].op->takes_over || !forward.valid() || gone[forward.at()]) continue;
    const std::vector<ValueId>& made = graph[forward].outputs;
    if (std::ranges::any_of(made, [&](ValueId v) { return reaches[v.at()]; })) continue;
    for (const ValueId value : made) late[value.at()] = true;
    gone[forward.at()] = true;
    take_over(graph, make_id<NodeId>(n), forward);
  }
  for (Node& node : graph.nodes) {
    if (node.backward || gone[static_cast<size_t>(&node - graph.nodes.data())]) continue;
    if (std::ranges::none_of(node.inputs, [&](ValueId v) { return late[v.at()]; })) continue;
    node.backward = true;
    for (const ValueId output : node.outputs) late[output.at()] = true;
  }
  Order order(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!gone[n]) order.add(make_id<NodeId>(n));
  }
  if (std::ranges::count(gone, true) > 0) put_in_order(graph, order.order());
}

}  // namespace thimble
