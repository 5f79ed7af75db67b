#include "transform/shard.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/order.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 4> kShards = {"none", "state", "gradients", "weights"};

// A 16-bit copy of a weight that is kept in f32: the weight's only reader.
NodeId cast_of(const Graph& graph, const std::vector<NodeId>& readers) {
  const bool only = readers.size() == 1 && graph[readers[0]].op->casts;
  return only ? readers[0] : NodeId{};
}

}  // namespace

std::string_view name_of(Shard shard) { return kShards[static_cast<size_t>(shard)]; }

Attrs part_attrs(const RanksSpec& ranks, int64_t elements, int64_t unit) {
  const int64_t units = (elements + unit - 1) / unit;
  return {{"ranks", int64_t{ranks.count}},
          {"part", (units + ranks.count - 1) / ranks.count * unit}};
}

void shard_weights(Graph& graph, const RanksSpec& ranks, int64_t unit) {
  if (!ranks.parts()) return;
  const std::vector<std::vector<NodeId>> readers = readers_of(graph);
  const size_t first = graph.nodes.size(), values = graph.values.size();
  std::vector<size_t> slots;
  Builder b(graph);
  for (size_t v = 0; v < values; ++v) {
    const ValueId w = make_id<ValueId>(v);
    if (graph[w].role != Role::weight || readers[v].empty()) continue;
    // Weights that are used as they are stay whole unless they are what is sharded. Masters of
    // 16-bit copies are state: only the copy is whole, from its first use in a step to its last.
    const NodeId cast = cast_of(graph, readers[v]);
    if (ranks.shard != Shard::weights && !cast.valid()) continue;
    const Shape shape = graph[w].type.shape;
    Attrs attrs = part_attrs(ranks, shape.elements(), unit);
    const Shape part = {attrs.integer("part")};
    graph[w].unsharded = shape;
    graph[w].type.shape = part;
    const ValueId used = cast.valid() ? graph[cast].outputs[0] : w;
    graph[used].type.shape = part;
    std::vector<NodeId> users = readers[used.at()];
    attrs.set("shape", std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
    const Builder::Marked kept(b, ranks.shard == Shard::weights ? Mark::automatic : Mark::keep);
    const ValueId whole = b.op("all_gather", {used}, attrs);
    graph[whole].name = graph[used].name + ".whole";
    for (const NodeId user : users) {
      std::ranges::replace(graph[user].inputs, used, whole);
    }
    internal_check(!users.empty(), "a weight that nobody uses");
    slots.push_back(users.front().at());
  }
  insert_nodes(graph, first, slots);
}

ValueId reduced(Builder& b, ValueId gradient, const RanksSpec& ranks, int64_t unit) {
  const Role role = b.graph()[gradient].role;
  const ValueId sum =
      ranks.parts()
          ? b.op("reduce_scatter", {gradient}, part_attrs(ranks, b.type(gradient).elements(), unit))
          : b.op("all_reduce", {gradient}, {{"ranks", int64_t{ranks.count}}});
  b.graph()[sum].role = role;
  return sum;
}

std::vector<ValueId> reduce_gradients(Graph& graph, std::span<const ValueId> weights,
                                      std::vector<ValueId> gradients, const RanksSpec& ranks,
                                      int64_t unit) {
  if (!ranks.several()) return gradients;
  const size_t first = graph.nodes.size();
  Builder b(graph);
  b.set_backward(true);
  std::vector<size_t> order;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].valid() && !graph[weights[i]].is_shard()) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return graph[gradients[i]].producer.at(); });
  for (const size_t i : order) gradients[i] = reduced(b, gradients[i], ranks, unit);
  hoist_nodes(graph, first);
  return gradients;
}

std::vector<ValueId> reduce_results(Graph& graph, const RanksSpec& ranks) {
  if (!ranks.several()) return graph.results;
  const size_t first = graph.nodes.size();
  Builder b(graph);
  b.set_backward(true);
  for (ValueId& result : graph.results) result = add_sum_over_ranks(b, result, ranks);
  hoist_nodes(graph, first);
  return graph.results;
}

// A part of the tensor to (or from) every other rank; where all have to get the result, once more.
Traffic traffic_of(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (!node.op->collective) return {};
  const TensorType& in = graph[node.inputs.back()].type;
  const TensorType& out = graph[node.outputs[0]].type;
  const int64_t ranks = node.attrs.integer("ranks");
  const bool parts = node.attrs.integer("part", 0) > 0;
  const int64_t part = parts ? node.attrs.integer("part")
                             : (std::max(in.elements(), out.elements()) + ranks - 1) / ranks;
  const double messages = static_cast<double>((ranks - 1) * (parts ? 1 : 2));
  return {messages, messages * static_cast<double>(part * size_of(in.dtype))};
}

ValueId add_sum_over_ranks(Builder& b, ValueId value, const RanksSpec& ranks) {
  return b.op("all_reduce", {value}, {{"ranks", int64_t{ranks.count}}});
}

}  // namespace thimble
