// Samples of differentiable ops, small ones, with their inputs in double.
#include <algorithm>

#include "base/error.h"
#include "graph/builder.h"
#include "support/op_harness.h"
#include "support/random_graph.h"

namespace thimble {
namespace {

// Thousands of graphs run dozens of times: an op takes part with what is smaller, if anything is.
constexpr int64_t kMostElements = 400;
constexpr double kMostFlops = 20'000;

std::vector<TensorType> types_in_double(const OpDef& op, const Sample& sample) {
  if (sample.build == nullptr) return switched_types(op, sample, DType::f64);
  std::vector<TensorType> types = sample.inputs;
  for (TensorType& type : types) {
    if (is_floating(type.dtype)) type.dtype = DType::f64;
  }
  return types;
}

// The outputs whose gradients the op's gradient reads or passes on; others are saved for it.
std::vector<size_t> differentiable_outputs(const OpDef& op, const Sample& sample) {
  Graph graph;
  Builder b(graph);
  std::vector<ValueId> inputs, wrt;
  for (const TensorType& type : sample.inputs) inputs.push_back(b.input("x", type));
  for (const int i : sample.differentiate) wrt.push_back(inputs[static_cast<size_t>(i)]);
  const std::vector<ValueId> made = b.apply(op.name, inputs, sample.attrs);
  std::vector<GradientRoot> roots;
  std::vector<size_t> outputs;  // by root
  for (size_t k = 0; k < made.size(); ++k) {
    if (!is_floating(b.type(made[k]).dtype)) continue;
    roots.push_back({made[k], b.input("upstream", b.type(made[k]))});
    outputs.push_back(k);
  }
  const std::vector<ValueId> gradients = add_gradients(graph, roots, wrt);
  const auto readers = readers_of(graph);
  std::vector<size_t> results;
  for (size_t r = 0; r < roots.size(); ++r) {
    const ValueId upstream = roots[r].upstream;
    if (!readers[upstream.at()].empty() || std::ranges::count(gradients, upstream) > 0) {
      results.push_back(outputs[r]);
    }
  }
  return results;
}

struct Size {
  int64_t elements = 0;
  double flops = 0;
  bool is_small() const { return elements <= kMostElements && flops <= kMostFlops; }
};

Size size_of(const OpDef& op, const Sample& sample) {
  Size size;
  for (const TensorType& type : sample.inputs) size.elements += type.elements();
  if (sample.build == nullptr) {
    Signature signature = {&op, sample.attrs, sample.inputs, op.infer(sample.inputs, sample.attrs)};
    for (const TensorType& type : signature.outputs) size.elements += type.elements();
    size.flops = op.work_of(signature).flops;
  }
  return size;
}

std::vector<Ingredient> ingredients_of(const OpDef& op) {
  std::vector<Ingredient> small, large;
  Size least{INT64_MAX, 0};
  for (Sample& sample : op.samples()) {
    if (sample.differentiate.empty() || sample.accumulate != 0) continue;
    sample.inputs = types_in_double(op, sample);
    Ingredient found = {&op, sample, {0}};
    if (sample.build == nullptr) found.results = differentiable_outputs(op, sample);
    const Size size = size_of(op, sample);
    if (size.is_small()) small.push_back(found);
    if (size.elements < least.elements) least = size, large = {found};
  }
  return small.empty() ? large : small;
}

}  // namespace

std::span<const Ingredient> ingredients() {
  static const std::vector<Ingredient> all = [] {
    std::vector<Ingredient> result;
    for (const OpDef* op : all_ops()) {
      if (op->gradient != nullptr)
        std::ranges::move(ingredients_of(*op), std::back_inserter(result));
    }
    return result;
  }();
  return all;
}

}  // namespace thimble
