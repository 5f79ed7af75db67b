// The language of fusion patterns (transform/fuse): forms to match, and a graph whose nodes are
// replaced while value ids stay valid.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/builder.h"

namespace thimble {

// A pattern of nodes: how a value has to be made, down to leaves. Casts between floating types, and
// products with 1, are ignored: the fused op rounds once, at its end.
struct Form {
  std::string_view op;  // empty: a leaf, which matches any value; "either": one of the inputs
  std::string_view name = {};  // of the value in a match; the same name twice: the same value
  std::string_view of = {};    // of a map, or the kind of a reduce; empty: any
  std::optional<double> number = {};  // the factor of a scale, the first number of a map; none: any
  std::vector<Form> inputs = {};
};

inline Form any(std::string_view name) { return {.op = "", .name = name}; }
inline Form made(std::string_view op, std::vector<Form> inputs, std::string_view name = {}) {
  return {.op = op, .name = name, .inputs = std::move(inputs)};
}
inline Form mapped(std::string_view function, Form x, std::string_view name = {}) {
  return {.op = "map", .name = name, .of = function, .inputs = {std::move(x)}};
}
inline Form mapped(std::string_view function, double number, Form x) {
  return {.op = "map", .of = function, .number = number, .inputs = {std::move(x)}};
}
inline Form scaled(double factor, Form x) {
  return {.op = "scale", .number = factor, .inputs = {std::move(x)}};
}
inline Form mean(Form x, std::string_view name) {
  return {.op = "reduce", .name = name, .of = "mean", .inputs = {std::move(x)}};
}
inline Form either(std::vector<Form> forms) { return {.op = "either", .inputs = std::move(forms)}; }

struct Match {
  std::vector<std::pair<std::string_view, ValueId>> named;
  std::vector<NodeId> inner;  // the nodes that make the form, its root among them

  ValueId operator[](std::string_view name) const;
};

class Fusing {
 public:
  // REQUIRES: the graph outlives it.
  Fusing(Graph& graph, std::span<const ValueId> read);

  const Graph& graph() const { return graph_; }
  TensorType type(ValueId value) const { return graph_[value].type; }
  Shape shape(ValueId value) const { return graph_[value].type.shape; }
  bool is_alive(NodeId node) const { return alive_[node.at()]; }
  // The node that made a value; null: none.
  const Node* maker(ValueId value) const;
  // Also null where another op made it.
  const Node* maker(ValueId value, std::string_view op) const;
  // The base of a view, through further views; or also through casts between floating types.
  ValueId behind_views(ValueId value) const;
  ValueId behind_casts(ValueId value) const;
  // Whether a weight's gradient passes through the value.
  bool trains(ValueId value) const { return trains_[value.at()]; }
  // How many nodes read it; one more if it must survive (`read` of the constructor).
  size_t readers(ValueId value) const { return readers_[value.at()].size() + kept_[value.at()]; }
  const std::vector<NodeId>& nodes_reading(ValueId value) const { return readers_[value.at()]; }

  // A match of the form at the node, if no other node reads the values in between.
  std::optional<Match> match(NodeId root, const Form& form) const;

  // Adds a node at the place of the node that patterns are being tried at.
  std::vector<ValueId> apply(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  // The value with another shape: itself or the base of its view, if that has the shape, else a
  // view.
  ValueId reshaped(ValueId value, const std::vector<int64_t>& dims);
  // The value in another floating type: a cast's input if that has the type, else a cast.
  ValueId in_dtype(ValueId value, DType dtype);

  // Replaces the value by `by`, with the value's shape and type. Nodes without readers are removed.
  void replace(ValueId value, ValueId by);

  // For fuse(): moves to the next node to try patterns at, and ends.
  void stand_at(NodeId node) { at_ = node; }
  std::vector<ValueId> finish();

 private:
  bool matches(const Form& form, ValueId value, bool root, Match& match) const;
  bool matches_node(const Form& form, const Node& node, Match& match) const;
  bool is_looked_through(const Node& node) const;
  void kill(NodeId node);
  void note(NodeId node);
  void skip_views();

  Graph& graph_;
  Builder builder_;
  NodeId at_ = NodeId{};
  std::vector<size_t> place_;                 // by node: the original that it precedes
  std::vector<bool> alive_;                   // by node
  std::vector<std::vector<NodeId>> readers_;  // by value: nodes that are alive
  std::vector<bool> kept_;                    // by value: it must survive
  std::vector<bool> trains_;
};

}  // namespace thimble
