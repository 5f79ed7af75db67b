#include "transform/accumulate.h"

#include <algorithm>

#include "graph/builder.h"

namespace thimble {
namespace {

size_t output_of(const Graph& graph, ValueId value) {
  const auto& outputs = graph[graph[value].producer].outputs;
  return static_cast<size_t>(std::find(outputs.begin(), outputs.end(), value) - outputs.begin());
}

// The partial sums of a value that is added up inside the graph (the gradient of a weight used at
// every time step), the whole first, its first summand last.
std::vector<ValueId> partial_sums_of(const Graph& graph, ValueId sum) {
  std::vector<ValueId> partial;
  for (ValueId value = sum; value.valid();) {
    partial.push_back(value);
    if (!graph[value].producer.valid()) break;
    value = graph[graph[value].producer].added_into(output_of(graph, value));
  }
  return partial;
}

// Whether the first summand can be added to another value in place: its op can, and no node reads
// it or a later partial sum.
bool can_add_in_place(const Graph& graph, const std::vector<ValueId>& partial,
                      const std::vector<bool>& read) {
  const NodeId maker = graph[partial.back()].producer;
  if (!maker.valid() || graph[maker].phase != Phase::per_microbatch || graph[maker].op->view)
    return false;
  if (((graph[maker].op->accumulates >> output_of(graph, partial.back())) & 1u) == 0) return false;
  return std::none_of(partial.begin(), partial.end(), [&](ValueId v) { return read[v.at()]; });
}

}  // namespace

std::vector<ValueId> accumulate_into(Graph& graph, std::span<const Accumulation> sums) {
  std::vector<bool> read(graph.values.size(), false);  // as an input, or as another one's sum
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) read[input.at()] = true;
  }
  std::vector<bool> wanted(graph.values.size(), false);
  for (const Accumulation& sum : sums) {
    if (wanted[sum.value.at()]) read[sum.value.at()] = true;
    wanted[sum.value.at()] = true;
  }
  Builder b(graph);
  b.set_backward(true);
  std::vector<ValueId> results;
  for (const auto& [start, value] : sums) {
    const std::vector<ValueId> partial = partial_sums_of(graph, value);
    if (!can_add_in_place(graph, partial, read)) {
      results.push_back(b.accumulate("copy", {value}, {}, {start}).front());
      continue;
    }
    Node& first = graph[graph[partial.back()].producer];
    first.accumulate.resize(first.outputs.size());
    first.accumulate[output_of(graph, partial.back())] = start;
    for (const ValueId sum_so_far : partial) graph[sum_so_far].role = graph[start].role;
    results.push_back(value);
  }
  return results;
}

ValueId add_zero(Graph& graph, ValueId value, std::string name) {
  const TensorType type = graph[value].type;
  Builder b(graph);
  b.set_backward(true);
  b.set_phase(Phase::prologue);
  const auto dims = type.shape.dims();
  const ValueId zero = b.op("fill", {},
                            {{"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                             {"value", 0.0},
                             {"dtype", std::string(name_of(type.dtype))}});
  graph[zero].role = graph[value].role;
  graph[zero].name = std::move(name);
  return zero;
}

void accumulate_results(Graph& graph) {
  std::vector<Accumulation> sums;
  for (size_t r = 0; r < graph.results.size(); ++r) {
    const ValueId result = graph.results[r];
    sums.push_back({add_zero(graph, result, fmt::format("result{}.sum", r)), result});
  }
  graph.results = accumulate_into(graph, sums);
}

}  // namespace thimble
