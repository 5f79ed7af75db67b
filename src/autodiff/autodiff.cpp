#include "autodiff/autodiff.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "graph/builder.h"

namespace thimble {
namespace {

class Differentiator final : public GradientBuilder {
 public:
  Differentiator(Graph& graph, std::span<const ValueId> wrt) : graph_(graph), builder_(graph) {
    mark_needed(wrt);
    gradient_of_.resize(graph.values.size());
    wanted_.resize(graph.values.size(), false);
    for (const ValueId value : wrt) wanted_[value.at()] = true;
  }

  void seed(const GradientRoot& root) {
    internal_check(graph_[root.value].type == graph_[root.upstream].type,
                   "a root's gradient has another type than the root");
    ++claims_[root.upstream];
    contribute(root.value, root.upstream);
  }

  void run() {
    builder_.set_backward(true);
    for (size_t n = graph_.nodes.size(); n-- > 0;) differentiate(n);
  }

  ValueId gradient_of(ValueId value) const { return gradient_of_[value.at()]; }

  const Node& node() const override { return forward_; }
  Builder& build() override { return builder_; }
  ValueId upstream(size_t output) const override {
    return gradient_of_[forward_.outputs[output].at()];
  }
  bool wants(size_t input) const override { return needed_[forward_.inputs[input].at()]; }
  void give(size_t input, ValueId gradient) override {
    if (!wants(input)) return;
    ++claims_[gradient];
    given_.emplace_back(forward_.inputs[input], gradient);
  }

 private:
  // A value is needed when it is one of `wrt` or made from one through differentiable ops.
  void mark_needed(std::span<const ValueId> wrt) {
    needed_.resize(graph_.values.size(), false);
    for (const ValueId value : wrt) needed_[value.at()] = true;
    for (const Node& n : graph_.nodes) {
      if (n.op->gradient == nullptr) continue;
      const bool depends = std::any_of(n.inputs.begin(), n.inputs.end(),
                                       [&](ValueId input) { return needed_[input.at()]; });
      if (!depends) continue;
      for (const ValueId output : n.outputs) {
        if (is_floating(graph_[output].type.dtype)) needed_[output.at()] = true;
      }
    }
  }

  void differentiate(size_t index) {
    forward_ = graph_.nodes[index];  // a copy: the graph grows below
    if (forward_.op->gradient == nullptr) return;
    bool arrives = false;
    bool leaves = false;
    for (size_t k = 0; k < forward_.outputs.size(); ++k) arrives |= upstream(k).valid();
    for (size_t i = 0; i < forward_.inputs.size(); ++i) leaves |= wants(i);
    if (!arrives || !leaves) return;

    const size_t dot = forward_.name.rfind('.');
    const std::string where = dot == std::string::npos ? "" : "." + forward_.name.substr(0, dot);
    const Builder::Scope scope(builder_, "grad" + where);
    builder_.set_differentiates(make_id<NodeId>(index));
    given_.clear();
    forward_.op->gradient(*this);
    // The outputs' gradients are complete and have been read. The caller's own are never given up.
    for (size_t k = 0; k < forward_.outputs.size(); ++k) {
      const ValueId output = forward_.outputs[k];
      if (upstream(k).valid() && !wanted_[output.at()]) --claims_[upstream(k)];
    }
    // Only now, when every claim of this gradient function is counted and all its nodes are made:
    // none of them reads a sum after it was added into.
    for (const auto& [value, gradient] : given_) contribute(value, gradient);
  }

  // Moves one claim on `gradient` to the sum of `value`.
  void contribute(ValueId value, ValueId gradient) {
    ValueId& sum = gradient_of_[value.at()];
    if (sum.valid()) {
      --claims_[sum];
      --claims_[gradient];
      if (!add_in_place(sum, gradient)) gradient = builder_.op("add", {sum, gradient});
      ++claims_[gradient];
    }
    sum = gradient;
    if (stands_for_weight(value) && is_ours(sum) && only_weights_are_given(sum)) {
      graph_[sum].role = Role::gradient;
    }
  }

  bool only_weights_are_given(ValueId gradient) const {
    return std::ranges::all_of(given_, [&](const auto& entry) {
      return entry.second != gradient || stands_for_weight(entry.first);
    });
  }

  // Turns the node that made `gradient` into one that adds into `sum`, if that is sound: the op can,
  // the sum is a temporary of ours that no one else counts on, and no node from there on reads
  // either of them.
  bool add_in_place(ValueId sum, ValueId gradient) {
    if (!is_ours(sum) || !is_ours(gradient) || claims_[sum] != 0 || claims_[gradient] != 0) {
      return false;
    }
    if (graph_[sum].type != graph_[gradient].type) return false;
    const NodeId maker = graph_[gradient].producer;
    if (graph_[sum].producer >= maker) return false;
    Node& node = graph_[maker];
    const size_t output = static_cast<size_t>(
        std::find(node.outputs.begin(), node.outputs.end(), gradient) - node.outputs.begin());
    if (((node.op->accumulates >> output) & 1u) == 0 || node.added_into(output).valid()) {
      return false;
    }
    // A view shares the sum's bytes, and may be read later.
    for (size_t n = graph_[sum].producer.at(); n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op->view && graph_.nodes[n].inputs[0] == sum) return false;
    }
    for (size_t n = maker.at(); n < graph_.nodes.size(); ++n) {
      for (const ValueId read : graph_.nodes[n].inputs) {
        if (read == sum || read == gradient) return false;
      }
      for (const ValueId target : graph_.nodes[n].accumulate) {
        if (target == sum || target == gradient) return false;
      }
    }
    node.accumulate.resize(node.outputs.size());
    node.accumulate[output] = sum;
    graph_[gradient].role = graph_[sum].role;
    return true;
  }

  // A weight, or the copy of one in another type that is differentiated in its place.
  bool stands_for_weight(ValueId value) const {
    const Value& v = graph_[value];
    if (v.role == Role::weight) return true;
    if (!v.producer.valid() || !graph_[v.producer].op->casts) return false;
    const ValueId from = graph_[v.producer].inputs[0];
    return graph_[from].role == Role::weight && !needed_[from.at()];
  }

  bool is_ours(ValueId value) const {
    const NodeId producer = graph_[value].producer;
    return producer.valid() && graph_[producer].backward && !graph_[producer].op->view;
  }

  Graph& graph_;
  Builder builder_;
  std::vector<bool> needed_;          // by forward value
  std::vector<bool> wanted_;          // by forward value: its gradient is the caller's
  std::vector<ValueId> gradient_of_;  // by forward value; the sum so far
  // By gradient: how many hold it, as the sum of a forward value or as a contribution on its way to
  // one. Bytes are overwritten only when nobody does.
  std::unordered_map<ValueId, int> claims_;
  Node forward_;                                    // the node being differentiated
  std::vector<std::pair<ValueId, ValueId>> given_;  // its contributions: value, gradient
};

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, std::span<const GradientRoot> roots,
                                   std::span<const ValueId> wrt) {
  Differentiator differentiator(graph, wrt);
  for (const GradientRoot& root : roots) differentiator.seed(root);
  differentiator.run();
  std::vector<ValueId> gradients;
  for (const ValueId value : wrt) gradients.push_back(differentiator.gradient_of(value));
  return gradients;
}

}  // namespace thimble
