#include "ops/pointwise/binary.h"

#include "ops/samples.h"

namespace thimble {

std::vector<TensorType> infer_binary(std::string_view op, std::span<const TensorType> inputs) {
  check_inputs(op, inputs, 2);
  check_floating(op, inputs[0]);
  user_check(inputs[0].dtype == inputs[1].dtype,
             "[{}] wants two tensors of one dtype, got {} and {}", op, to_string(inputs[0]),
             to_string(inputs[1]));
  return {{broadcast(inputs[0].shape, inputs[1].shape, op), inputs[0].dtype}};
}

Work binary_work(const Signature& s) { return {count_of(s.outputs[0]), 0}; }

ValueId sum_to_shape(Builder& build, ValueId gradient, const Shape& shape) {
  const Shape from = build.shape(gradient);
  if (from == shape) return gradient;
  const int leading = from.rank() - shape.rank();
  std::vector<int64_t> axes;
  bool inner = false;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool repeats = axis >= leading && shape[axis - leading] == 1 && from[axis] != 1;
    inner = inner || repeats;
    if (axis < leading || repeats) axes.push_back(axis);
  }
  const int64_t keep_dims = leading == 0 ? 1 : 0;
  const ValueId sum =
      build.op("reduce", {gradient}, {{"axes", axes}, {"kind", "sum"}, {"keep_dims", keep_dims}});
  if (leading == 0 || !inner) return sum;
  const auto dims = shape.dims();
  return build.op("reshape", {sum}, {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
}

std::vector<Sample> binary_samples() {
  const std::vector<std::pair<Shape, Shape>> cases = {
      {{2, 3, 4, 5}, {2, 3, 4, 5}},  // no broadcast
      {{37}, {37}},
      {{2, 3, 4, 8}, {8}},        // a bias
      {{8}, {3, 8}},              // the first one repeats
      {{2, 3, 4}, {2, 1, 4}},     // inner axis
      {{2, 1, 4, 1}, {3, 1, 5}},  // both, and a missing axis
      {{2, 6}, {}},               // a scalar
  };
  std::vector<Sample> result;
  for (const auto& [a, b] : cases) {
    result.push_back({.inputs = {{a}, {b}}, .differentiate = {0, 1}});
  }
  return and_added(std::move(result));
}

}  // namespace thimble
