#include "transform/fusing.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/order.h"

namespace thimble {
namespace {

bool is_reshape(const Node& node) { return node.op->view && node.op->gradient != nullptr; }

// Numbers of files have been through f32.
bool is_near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); }

double number_of(const Node& node) {
  return node.attrs.real(node.attrs.has("factor") ? "factor" : "a", 0);
}

}  // namespace

ValueId Match::operator[](std::string_view name) const {
  for (const auto& [known, value] : named) {
    if (known == name) return value;
  }
  internal_check(false, "a pattern asks for a value that its form does not name");
  return {};
}

Fusing::Fusing(Graph& graph, std::span<const ValueId> read)
    : graph_(graph),
      builder_(graph),
      alive_(graph.nodes.size(), true),
      readers_(readers_of(graph)) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) place_.push_back(n);
  kept_.resize(graph.values.size(), false);
  for (const ValueId value : graph.results) kept_[value.at()] = true;
  for (const ValueId value : read) kept_[value.at()] = true;
  for (const Value& value : graph.values) trains_.push_back(value.role == Role::weight);
  for (const Node& node : graph.nodes) {
    if (node.op->gradient == nullptr) continue;
    const bool passes = std::ranges::any_of(node.inputs, [&](ValueId v) { return trains(v); });
    for (const ValueId output : node.outputs) trains_[output.at()] = passes;
  }
}

const Node* Fusing::maker(ValueId value) const {
  const NodeId producer = graph_[value].producer;
  return producer.valid() ? &graph_[producer] : nullptr;
}

const Node* Fusing::maker(ValueId value, std::string_view op) const {
  const Node* node = maker(value);
  return node != nullptr && node->op->name == op ? node : nullptr;
}

ValueId Fusing::behind_views(ValueId value) const {
  while (const Node* node = maker(value)) {
    if (!is_reshape(*node)) break;
    value = node->inputs[0];
  }
  return value;
}

bool Fusing::is_looked_through(const Node& node) const {
  if (node.op->casts) {
    return is_floating(type(node.inputs[0]).dtype) && is_floating(type(node.outputs[0]).dtype);
  }
  return node.op->is_identity != nullptr && node.op->is_identity(node.attrs);
}

ValueId Fusing::behind_casts(ValueId value) const {
  for (;;) {
    value = behind_views(value);
    const Node* node = maker(value);
    if (node == nullptr || !is_looked_through(*node)) return value;
    value = node->inputs[0];
  }
}

bool Fusing::matches(const Form& form, ValueId value, bool root, Match& match) const {
  if (form.op == "either") {
    for (const Form& one : form.inputs) {
      const Match before = match;
      if (matches(one, value, root, match)) return true;
      match = before;
    }
    return false;
  }
  if (!form.op.empty()) {
    const Node* node = maker(value);
    while (node != nullptr && !root && is_looked_through(*node) && node->op->name != form.op) {
      match.inner.push_back(graph_[value].producer);
      value = node->inputs[0];
      node = maker(value);
    }
    if (node == nullptr || node->op->name != form.op) return false;
    const bool fits = (form.of.empty() || node->attrs.text("of", "") == form.of ||
                       node->attrs.text("kind", "") == form.of) &&
                      (!form.number || is_near(number_of(*node), *form.number));
    if (!fits || node->inputs.size() != form.inputs.size()) return false;
    match.inner.push_back(graph_[value].producer);
    if (!matches_node(form, *node, match)) return false;
  }
  if (form.name.empty()) return true;
  for (const auto& [known, other] : match.named) {
    if (known == form.name) return behind_casts(other) == behind_casts(value);
  }
  match.named.emplace_back(form.name, value);
  return true;
}

bool Fusing::matches_node(const Form& form, const Node& node, Match& match) const {
  const auto try_order = [&](bool swapped) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const size_t input = swapped ? node.inputs.size() - 1 - i : i;
      if (!matches(form.inputs[i], node.inputs[input], false, match)) return false;
    }
    return true;
  };
  if (!node.op->commutes) return try_order(false);
  const Match before = match;
  if (try_order(false)) return true;
  match = before;
  return try_order(true);
}

std::optional<Match> Fusing::match(NodeId root, const Form& form) const {
  Match match;
  if (!matches(form, graph_[root].outputs[0], true, match)) return std::nullopt;
  for (const NodeId inner : match.inner) {
    if (inner == root) continue;
    for (const ValueId output : graph_[inner].outputs) {
      const bool inside = std::ranges::all_of(readers_[output.at()], [&](NodeId reader) {
        return std::ranges::find(match.inner, reader) != match.inner.end();
      });
      if (kept_[output.at()] || !inside) return std::nullopt;
    }
  }
  return match;
}

void Fusing::note(NodeId node) {
  for (const ValueId input : graph_[node].inputs) {
    std::vector<NodeId>& readers = readers_[input.at()];
    if (readers.empty() || readers.back() != node) readers.push_back(node);
  }
}

std::vector<ValueId> Fusing::apply(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  bool trained = false;
  for (const ValueId input : inputs) trained = trained || trains(input);
  std::vector<ValueId> made = builder_.apply(op, std::move(inputs), std::move(attrs));
  place_.push_back(at_.at());
  alive_.push_back(true);
  readers_.resize(graph_.values.size());
  kept_.resize(graph_.values.size(), false);
  trains_.resize(graph_.values.size(), trained);
  note(graph_[made[0]].producer);
  return made;
}

ValueId Fusing::reshaped(ValueId value, const std::vector<int64_t>& dims) {
  const Shape wanted{std::span<const int64_t>(dims)};
  if (shape(value) == wanted) return value;
  const Node* node = maker(value);
  while (node != nullptr && is_reshape(*node)) {
    value = node->inputs[0];
    if (shape(value) == wanted) return value;
    node = maker(value);
  }
  for (const NodeId reader : nodes_reading(value)) {  // once for all who see it so
    const Node& view = graph_[reader];
    const bool before = place_[reader.at()] <= at_.at();
    if (before && is_reshape(view) && shape(view.outputs[0]) == wanted) {
      return view.outputs[0];
    }
  }
  return apply("reshape", {value}, {{"shape", dims}})[0];
}

ValueId Fusing::in_dtype(ValueId value, DType dtype) {
  for (ValueId from = value; type(from).dtype != dtype;) {
    const Node* node = maker(from);
    if (node == nullptr || !is_looked_through(*node)) {
      return apply("cast", {value}, {{"dtype", std::string(name_of(dtype))}})[0];
    }
    from = node->inputs[0];
    if (type(from).dtype == dtype) return from;
  }
  return value;
}

void Fusing::kill(NodeId first) {
  std::vector<NodeId> next = {first};
  while (!next.empty()) {
    const NodeId id = next.back();
    next.pop_back();
    if (!alive_[id.at()]) continue;
    alive_[id.at()] = false;
    for (const ValueId input : graph_[id].inputs) {
      std::erase(readers_[input.at()], id);
      const NodeId producer = graph_[input].producer;
      if (!producer.valid() || !alive_[producer.at()]) continue;
      const bool wanted = std::ranges::any_of(graph_[producer].outputs,
                                              [&](ValueId output) { return readers(output) > 0; });
      if (!wanted) next.push_back(producer);
    }
  }
}

void Fusing::replace(ValueId value, ValueId by) {
  const TensorType wanted = type(value);
  by = in_dtype(by, wanted.dtype);
  if (shape(by) != wanted.shape) {
    by = apply("reshape", {by},
               {{"shape",
                 std::vector<int64_t>(wanted.shape.dims().begin(), wanted.shape.dims().end())}})[0];
  }
  const NodeId before = graph_[value].producer, maker = graph_[by].producer;
  internal_check(maker.valid() && readers(by) == 0, "a value is replaced by one that others read");
  std::ranges::replace(graph_[maker].outputs, by, value);
  std::swap(graph_[value].name, graph_[by].name);
  graph_[value].producer = maker;
  graph_[by].producer = {};
  kill(before);
}

// Readers of a view of a view see the first of them, and where that has the shape, the value itself.
void Fusing::skip_views() {
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const NodeId id = make_id<NodeId>(n);
    const Node& node = graph_[id];
    if (!alive_[n] || !is_reshape(node)) continue;
    const ValueId output = node.outputs[0], from = node.inputs[0];
    ValueId base = from;
    while (const Node* other = maker(base)) {
      if (!is_reshape(*other)) break;
      base = other->inputs[0];
    }
    const bool same = shape(base) == shape(output) && !kept_[output.at()];
    const auto redirect = [&](NodeId reader, ValueId old, ValueId value) {
      std::ranges::replace(graph_[reader].inputs, old, value);
      readers_[value.at()].push_back(reader);
    };
    if (same && readers(output) > 0) {
      const std::vector<NodeId> readers = std::exchange(readers_[output.at()], {});
      for (const NodeId reader : readers) redirect(reader, output, base);
      kill(id);
    } else if (base != from) {
      std::erase(readers_[from.at()], id);
      redirect(id, from, base);
      const NodeId producer = graph_[from].producer;
      if (readers(from) == 0) kill(producer);
    }
  }
}

std::vector<ValueId> Fusing::finish() {
  skip_views();
  std::vector<NodeId> order;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (alive_[n]) order.push_back(make_id<NodeId>(n));
  }
  std::ranges::stable_sort(order, {}, [&](NodeId id) { return place_[id.at()]; });
  put_in_order(graph_, order);

  // Values that no node makes, and constants that none reads, go.
  std::vector<ValueId> now(graph_.values.size());
  std::vector<Value> values;
  for (size_t v = 0; v < now.size(); ++v) {
    Value& value = graph_.values[v];
    const bool lost = value.role == Role::constant ? readers(make_id<ValueId>(v)) == 0
                                                   : value.role == Role::activation;
    if (lost && !value.producer.valid()) continue;
    now[v] = make_id<ValueId>(values.size());
    values.push_back(std::move(value));
  }
  graph_.values = std::move(values);
  const auto follow = [&](ValueId& value) {
    if (value.valid()) value = now[value.at()];
  };
  for (Node& node : graph_.nodes) {
    for (auto* ids : {&node.inputs, &node.outputs, &node.accumulate}) {
      for (ValueId& value : *ids) follow(value);
    }
    // Streams are numbers of values (Builder::next_random_stream), and those are others now.
    if (node.attrs.has("stream")) node.attrs.set("stream", int64_t{node.outputs[0].index} + 1);
  }
  for (ValueId& value : graph_.results) follow(value);
  return now;
}

}  // namespace thimble
