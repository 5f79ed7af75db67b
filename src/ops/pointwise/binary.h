// Shared by add, sub and mul: two tensors of one dtype, broadcast against each other.
#pragma once

#include "graph/builder.h"
#include "ops/fixed_name.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {

std::vector<TensorType> infer_binary(std::string_view op, std::span<const TensorType> inputs);
Work binary_work(const Signature& signature);
std::vector<Sample> binary_samples();

// Sums a gradient over the axes along which a value of shape `shape` was repeated. Returns the
// gradient itself when nothing was.
ValueId sum_to_shape(Builder& build, ValueId gradient, const Shape& shape);

// y = combine(a, b) per element. An input with as many elements as y may share its bytes.
template <class Combine>
void run_binary(const KernelArgs& args, Combine combine) {
  const Shape& shape = args.outputs[0].type.shape;
  const std::array<Strides, 2> strides = {broadcast_strides(args.inputs[0].type.shape, shape),
                                          broadcast_strides(args.inputs[1].type.shape, shape)};
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* a = args.inputs[0].as<T>();
    const T* b = args.inputs[1].as<T>();
    T* y = args.outputs[0].as<T>();
    for_each_element(shape, strides, [&](int64_t at, const std::array<int64_t, 2>& from) {
      store(y, at, combine(widen(a[from[0]]), widen(b[from[1]])), args.adds_into(0));
    });
  });
}

struct BinaryTraits {
  uint32_t sums = 0;
  bool commutes = false;
};

// The whole record of y = Combine(a, b).
template <FixedName kName, RowFlow (*kRows)(const RowCall&, size_t), class Combine>
OpDef binary_op(std::string_view summary, void (*gradient)(GradientBuilder&), Combine,
                BinaryTraits traits = {}) {
  return {.name = kName.view(),
          .summary = summary,
          .infer = [](std::span<const TensorType> inputs,
                      const Attrs&) { return infer_binary(kName.view(), inputs); },
          .gradient = gradient,
          .reference = [](const KernelArgs& args) { run_binary(args, Combine()); },
          .work = binary_work,
          .samples = binary_samples,
          .rows = kRows,
          .in_place = {{0, 0}, {0, 1}},
          .sums = traits.sums,
          .commutes = traits.commutes,
          .accumulates = 1};
}

}  // namespace thimble
