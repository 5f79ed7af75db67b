// The public way to write graphs: by models, by op gradients, by optimizers and transforms.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace thimble {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  // Values present when the step begins.
  ValueId input(std::string_view name, TensorType type);
  ValueId weight(std::string_view name, TensorType type, Init init);
  ValueId state(std::string_view name, TensorType type, Init init = {});
  ValueId statistic(std::string_view name, TensorType type, Init init = {});
  // A weight that nobody trains.
  ValueId frozen(std::string_view name, TensorType type, Init init = {});
  // Equal constants are the same value.
  ValueId constant(double value, TensorType type);

  // Adds a node. Outputs are activations unless their role follows from an update or accumulation.
  std::vector<ValueId> apply(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  // The same for ops with one output (or of which only the first is wanted).
  ValueId op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  // Adds a node whose outputs are added into `into` (invalid ids: written).
  std::vector<ValueId> accumulate(std::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                                  std::vector<ValueId> into);

  // Names of nodes and values made while a scope is open begin with "scope.".
  class Scope {
   public:
    Scope(Builder& builder, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    size_t length_before_;
  };
  std::string scoped(std::string_view name) const;

  // Nodes made while it is open carry a mark to the planners: their results are always kept, or
  // always recomputed. The innermost counts.
  class Marked {
   public:
    Marked(Builder& builder, Mark mark) : builder_(builder), before_(builder.mark_) {
      builder.mark_ = mark;
    }
    ~Marked() { builder_.mark_ = before_; }
    Marked(const Marked&) = delete;
    Marked& operator=(const Marked&) = delete;

   private:
    Builder& builder_;
    const Mark before_;
  };

  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  // By value: the graph's own storage moves as it grows.
  TensorType type(ValueId value) const { return graph_[value].type; }
  Shape shape(ValueId value) const { return graph_[value].type.shape; }

  // How nodes made from now on are stamped.
  void set_phase(Phase phase) { phase_ = phase; }
  void set_backward(bool backward) { backward_ = backward; }
  void set_differentiates(NodeId forward) { differentiates_ = forward; }
  // A number for a node that draws random bits, never used twice in a graph.
  int64_t next_random_stream();

 private:
  ValueId add_value(std::string name, TensorType type, Role role, Init init);

  Graph& graph_;
  std::string scope_;
  Phase phase_ = Phase::per_microbatch;
  bool backward_ = false;
  NodeId differentiates_ = {};
  Mark mark_ = Mark::automatic;
};

// The argument of an op's gradient function: the node, the gradients of its outputs, and where to
// put the gradients of its inputs.
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;

  virtual const Node& node() const = 0;
  virtual Builder& build() = 0;
  // The gradient of output k; invalid when nothing depends on it.
  virtual ValueId upstream(size_t output = 0) const = 0;
  // Whether a gradient of input i is needed.
  virtual bool wants(size_t input) const = 0;
  // Contributes output `output` of the node that made `gradient` to the gradient of input i. The
  // first contribution may be added into by later ones without a temporary.
  virtual void give(size_t input, ValueId gradient) = 0;
  // Gives gradients[i] to input i, where it wants one.
  void give_each(std::span<const ValueId> gradients) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (wants(i)) give(i, gradients[i]);
    }
  }

  ValueId input(size_t i) const { return node().inputs[i]; }
  ValueId output(size_t k = 0) const { return node().outputs[k]; }
  const Attrs& attrs() const { return node().attrs; }
};

}  // namespace thimble
