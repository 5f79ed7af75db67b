// In which dtype values of a net are computed and kept (lowering.h).
#include <algorithm>
#include <limits>

#include "import/lowering.h"

namespace thimble {
namespace {

bool sums(const NetNode& node) { return node.op == "sum" || node.op == "mean"; }

}  // namespace

double largest_of(DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return dtype == DType::f16 ? 65504 : dtype == DType::bf16 ? 0x1.FEp127 : kInfinity;
}

ValueId Lowering::in_dtype(ValueId value, DType dtype) {
  if (builder_.type(value).dtype == dtype) return value;
  const auto cast = [&](ValueId from) {
    return builder_.op("cast", {from}, {{"dtype", std::string(name_of(dtype))}});
  };
  if (!keeps_16_bits()) return cast(value);
  const auto known = casts_.find({value, dtype});
  if (known != casts_.end()) return known->second;
  ValueId from = value;
  if (builder_.type(value).dtype == DType::f32 && kind_of(value) == Kind::of_constants) {
    from = builder_.op(
        "map", {value},
        {{"of", std::string("clip")}, {"a", -largest_of(dtype)}, {"b", largest_of(dtype)}});
  }
  return casts_[{value, dtype}] = cast(from);
}

// Values are made in order, so each is told of its inputs once.
Lowering::Kind Lowering::kind_of(ValueId value) {
  const Graph& graph = builder_.graph();
  for (size_t v = kinds_.size(); v <= value.at(); ++v) {
    const Value& made = graph.values[v];
    const bool fixed = made.role == Role::constant || fixed_.contains(made.name);
    Kind kind = fixed ? Kind::of_constants : Kind::other;
    if (made.producer.valid() && made.type.dtype == DType::f32) {
      const Node& node = graph[made.producer];
      const auto is = [&](Kind wanted) {
        return [&, wanted](ValueId input) { return kinds_[input.at()] == wanted; };
      };
      const auto rounded = [&](ValueId in) { return size_of(graph[in].type.dtype) == 2; };
      if (node.op->reduces || std::ranges::any_of(node.inputs, is(Kind::of_sum)) ||
          (!node.op->casts && std::ranges::any_of(node.inputs, rounded))) {
        kind = Kind::of_sum;
      } else if (!node.inputs.empty() && std::ranges::all_of(node.inputs, is(Kind::of_constants))) {
        kind = Kind::of_constants;
      }
    }
    kinds_.push_back(kind);
  }
  return kinds_[value.at()];
}

bool Lowering::only_summed(const NetNode& node) const {
  const auto readers = readers_.find(node.out[0]);
  if (node.out.size() != 1 || readers == readers_.end()) return false;
  return std::ranges::all_of(
      readers->second, [&](size_t n) { return n < net_.nodes.size() && sums(net_.nodes[n]); });
}

Lowering::Dtypes Lowering::dtypes_of(const NetNode& node) {
  if (node.attrs.has("whole")) return {DType::f32, DType::f32};
  if (!keeps_16_bits()) return {options_.storage, options_.storage};
  if (sums(node) || only_summed(node)) return {DType::f32, DType::f32};
  bool of_sum = false, rounded = false;
  for (size_t i = 0; i < node.in.size(); ++i) {
    if (!has(node, i) || is_number(node, i)) continue;
    const ValueId value = in(node, i).value;
    of_sum = of_sum || is_of_sum(value);
    rounded = rounded || size_of(builder_.type(value).dtype) == 2;
  }
  if (!of_sum) return {options_.storage, options_.storage};
  return {DType::f32, rounded ? options_.storage : DType::f32};
}

}  // namespace thimble
