#include "report/memory_terms.h"

#include <algorithm>

namespace thimble {
namespace {

// The value whose bytes a view shows.
ValueId storage_of(const Graph& graph, ValueId value) {
  for (NodeId maker = graph[value].producer; maker.valid() && graph[maker].op->view;
       maker = graph[value].producer) {
    value = graph[maker].inputs[0];
  }
  return value;
}

// Whether its bytes are the activation memory of whoever reads it in the backward pass: results of
// the forward pass, and sequences, which the first layer's gradient reads as they are fed.
bool is_left_by_forward(const Graph& graph, ValueId value) {
  const Value& v = graph[value];
  if (is_persistent(v.role)) return false;
  if (!v.producer.valid()) return is_floating(v.type.dtype) && v.type.elements() > 1;
  return graph[v.producer].phase == Phase::per_microbatch && !graph[v.producer].backward;
}

// Forward values that calls read, in order, without those that an earlier one of them recomputed.
class Saved {
 public:
  explicit Saved(const Graph& graph) : graph_(graph), known_(graph.values.size(), false) {}

  void call(const Node& node) {
    for (const ValueId input : node.inputs) keep(storage_of(graph_, input));
    for (const ValueId output : node.outputs) known_[output.at()] = true;
  }

  void keep(ValueId value) {
    if (known_[value.at()] || !is_left_by_forward(graph_, value)) return;
    known_[value.at()] = true;
    bytes_ += graph_[value].type.bytes();
  }

  Bytes bytes() const { return bytes_; }

 private:
  const Graph& graph_;
  std::vector<bool> known_;  // by value: counted, or made since
  Bytes bytes_;
};

Bytes model_bytes(const Graph& graph) {
  return persistent_bytes(graph, Role::weight) + persistent_bytes(graph, Role::frozen);
}

// Bitmaps, and where in the pool each weight's nonzeros begin.
Bytes places_of_nonzeros(const Graph& graph) {
  Bytes sum;
  for (const Node& node : graph.nodes) {
    if (!node.op->expands) continue;
    for (const ValueId input : node.inputs) {
      if (graph[input].role == Role::statistic) sum += graph[input].type.bytes();
    }
  }
  return sum;
}

bool starts_backward(const Node& node) {
  return node.backward && node.phase == Phase::per_microbatch;
}

}  // namespace

Bytes persistent_bytes(const Graph& graph, Role role) {
  Bytes sum;
  for (const Value& value : graph.values) {
    if (value.role == role && !value.producer.valid()) sum += value.type.bytes();
  }
  return sum;
}

MemoryTerms terms_on_paper(const Graph& graph) {
  const Bytes weights = model_bytes(graph);
  Saved saved(graph);
  for (const Node& node : graph.nodes) {
    if (starts_backward(node)) saved.call(node);
    if (!node.backward && node.attrs.text("act", "none") != "none") saved.keep(node.outputs[0]);
  }
  return {weights, weights + persistent_bytes(graph, Role::optimizer_state), saved.bytes()};
}

MemoryTerms terms_of(const Graph& graph, const Plan& plan) {
  Saved saved(graph);
  const auto first =
      std::find_if(plan.calls.begin(), plan.calls.end(),
                   [&](const PlannedCall& call) { return starts_backward(graph[call.node]); });
  for (auto call = first; call != plan.calls.end(); ++call) saved.call(graph[call->node]);
  return {model_bytes(graph) + places_of_nonzeros(graph),
          persistent_bytes(graph, Role::optimizer_state) +
              plan.peak_by_role[static_cast<size_t>(Role::gradient)],
          saved.bytes()};
}

}  // namespace thimble
