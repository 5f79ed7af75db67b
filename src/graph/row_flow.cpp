#include "graph/row_flow.h"

#include <algorithm>

namespace thimble {
namespace {

using Kind = RowFlow::Kind;

// A fixed value whose shape follows the rows: one axis, of a multiple of them.
std::optional<RowFlow> flow_by_shape(const Shape& shape, int64_t rows, const Shape& other,
                                     int64_t other_rows) {
  RowFlow flow;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == other[axis]) continue;
    const bool multiple = shape[axis] % rows == 0 && other[axis] % other_rows == 0 &&
                          shape[axis] / rows == other[axis] / other_rows;
    if (!multiple || flow.kind == Kind::rows) return std::nullopt;
    flow = {.kind = Kind::rows,
            .outer = shape.product(0, axis),
            .inner = shape[axis] / rows * shape.product(axis + 1, shape.rank())};
  }
  return flow;
}

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
}

// Numbers that differ between the two are sizes, in lists or by themselves; a real one is a factor.
bool same_factors(const Attrs& a, const Attrs& b) {
  for (const auto& [name, value] : a.entries()) {
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr && (!b.has(name) || b.real(name) != *real)) return false;
  }
  return true;
}

}  // namespace

std::optional<RowAxis> row_axis(const RowFlow& flow, const Shape& shape, int64_t rows) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t before = shape.product(0, axis), behind = shape.product(axis + 1, shape.rank());
    if (before == 0 || behind == 0 || flow.outer % before != 0 || flow.inner % behind != 0)
      continue;
    const RowAxis found = {axis, flow.outer / before, flow.inner / behind};
    if (found.outer * rows * found.inner == shape[axis]) return found;
  }
  return std::nullopt;
}

RowFlow along_axis(const RowAxis& rows, int axis, const Shape& shape) {
  return {.kind = Kind::rows,
          .outer = shape.product(0, axis) * rows.outer,
          .inner = rows.inner * shape.product(axis + 1, shape.rank())};
}

std::optional<std::vector<RowFlow>> row_flows(const Graph& graph, int64_t rows, const Graph& other,
                                              int64_t other_rows,
                                              std::span<const ValueId> fed_by_row) {
  if (graph.nodes.size() != other.nodes.size() || graph.values.size() != other.values.size()) {
    return std::nullopt;
  }
  std::vector<RowFlow> flows(graph.values.size());
  const auto by_shape = [&](ValueId value) {
    const Shape& here = graph[value].type.shape;
    const Shape& there = other[value].type.shape;
    return here.rank() == there.rank() ? flow_by_shape(here, rows, there, other_rows)
                                       : std::nullopt;
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ValueId value = make_id<ValueId>(v);
    if (graph[value].producer.valid()) continue;
    const auto flow = by_shape(value);
    if (!flow) return std::nullopt;
    flows[v] = *flow;
  }
  for (const ValueId value : fed_by_row) {
    if (flows[value.at()].kind != Kind::rows) return std::nullopt;
  }
  std::vector<RowFlow> inputs, repeated;
  std::vector<TensorType> types, made;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!same_node(node, other.nodes[n]) || !same_factors(node.attrs, other.nodes[n].attrs)) {
      return std::nullopt;
    }
    inputs.clear(), repeated.clear(), types.clear(), made.clear();
    for (const ValueId input : node.inputs) {
      inputs.push_back(flows[input.at()]);
      types.push_back(graph[input].type);
    }
    for (const ValueId output : node.outputs) {
      made.push_back(graph[output].type);
      repeated.push_back(by_shape(output).value_or(kMixed));
    }
    const RowCall call = {node.attrs, types, made, inputs, rows, repeated};
    const bool fixed =
        std::ranges::all_of(inputs, [](const RowFlow& f) { return f.kind == Kind::fixed; });
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      RowFlow& flow = flows[node.outputs[k].at()];
      const bool follows = made[k].shape != other[node.outputs[k]].type.shape;
      if (fixed && !follows) continue;
      flow = node.op->rows != nullptr ? node.op->rows(call, k) : kMixed;
      // A number of the whole batch that is there once for every row, added up, would grow by their
      // square. And of a constant, as many entries as there are rows are other ones for other rows.
      if (follows && flow.kind != Kind::rows) flow = kMixed;
    }
  }
  return flows;
}

}  // namespace thimble
