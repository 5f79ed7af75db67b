#include "graph/builder.h"

#include "base/error.h"
#include "graph/limits.h"
#include "graph/updates.h"

namespace thimble {

ValueId Builder::add_value(std::string name, TensorType type, Role role, Init init) {
  user_check(
      static_cast<int64_t>(graph_.values.size()) < kMostValues,
      "a step of more than {} tensors (at '{}') is beyond the planner; choose fewer layers or a "
      "shorter --length, or let a node take more of the sequence (--steps-at-once)",
      kMostValues, name);
  const ValueId id = make_id<ValueId>(graph_.values.size());
  graph_.values.push_back({std::move(name), type, role, NodeId{}, init});
  return id;
}

ValueId Builder::input(std::string_view name, TensorType type) {
  return add_value(scoped(name), type, Role::input, {});
}

ValueId Builder::weight(std::string_view name, TensorType type, Init init) {
  return add_value(scoped(name), type, Role::weight, init);
}

ValueId Builder::state(std::string_view name, TensorType type, Init init) {
  return add_value(scoped(name), type, Role::optimizer_state, init);
}

ValueId Builder::statistic(std::string_view name, TensorType type, Init init) {
  return add_value(scoped(name), type, Role::statistic, init);
}

ValueId Builder::frozen(std::string_view name, TensorType type, Init init) {
  return add_value(scoped(name), type, Role::frozen, init);
}

ValueId Builder::constant(double value, TensorType type) {
  const Init init{Init::Kind::constant, value};
  for (size_t v = 0; v < graph_.values.size(); ++v) {
    const Value& known = graph_.values[v];
    if (known.role == Role::constant && known.type == type && known.init == init) {
      return make_id<ValueId>(v);
    }
  }
  return add_value(fmt::format("constant.{}{}", value, to_string(type)), type, Role::constant,
                   init);
}

std::vector<ValueId> Builder::apply(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  return accumulate(op, std::move(inputs), std::move(attrs), {});
}

ValueId Builder::op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  return apply(op, std::move(inputs), std::move(attrs)).front();
}

std::vector<ValueId> Builder::accumulate(std::string_view op, std::vector<ValueId> inputs,
                                         Attrs attrs, std::vector<ValueId> into) {
  const OpDef* definition = find_op(op);
  internal_check(definition != nullptr, fmt::format("there is no op '{}'", op));
  std::vector<TensorType> types;
  for (const ValueId input : inputs) {
    internal_check(input.valid() && input.at() < graph_.values.size(),
                   fmt::format("[{}] input does not exist", op));
    types.push_back(graph_[input].type);
  }
  const std::vector<TensorType> result_types = definition->infer(types, attrs);

  const NodeId id = make_id<NodeId>(graph_.nodes.size());
  Node node;
  node.name = fmt::format("{}#{}", scoped(op), id.index);
  node.op = definition;
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  node.accumulate = std::move(into);
  node.phase = phase_;
  node.backward = backward_;
  node.differentiates = differentiates_;
  const bool can_repeat = definition->recompute != Recompute::never;
  if (can_repeat || mark_ == Mark::keep) node.mark = mark_;
  for (size_t k = 0; k < result_types.size(); ++k) {
    Role role = Role::activation;
    for (const Alias& update : updates_of(*definition, result_types.size())) {
      if (update.output == static_cast<int>(k)) {
        role = graph_[node.inputs[static_cast<size_t>(update.input)]].role;
      }
    }
    const ValueId target = node.added_into(k);
    if (target.valid()) {
      internal_check(((definition->accumulates >> k) & 1u) != 0,
                     fmt::format("[{}] output {} cannot be added into", op, k));
      internal_check(graph_[target].type == result_types[k],
                     fmt::format("[{}] accumulates into another type", op));
      role = graph_[target].role;
    }
    const std::string suffix = result_types.size() > 1 ? fmt::format(":{}", k) : "";
    const ValueId output = add_value(node.name + suffix, result_types[k], role, {});
    graph_[output].producer = id;
    node.outputs.push_back(output);
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

Builder::Scope::Scope(Builder& builder, std::string_view name)
    : builder_(builder), length_before_(builder.scope_.size()) {
  if (!builder_.scope_.empty()) builder_.scope_ += '.';
  builder_.scope_ += name;
}

Builder::Scope::~Scope() { builder_.scope_.resize(length_before_); }

std::string Builder::scoped(std::string_view name) const {
  return scope_.empty() ? std::string(name) : fmt::format("{}.{}", scope_, name);
}

// The caller makes a value next. Transforms may replace nodes, but values stay.
int64_t Builder::next_random_stream() { return static_cast<int64_t>(graph_.values.size()) + 1; }

}  // namespace thimble
