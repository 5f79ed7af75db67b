// count_nonfinite(x, ...) -> f32 [1]: elements of all tensors that are infinite or NaN. Loss scaling
// adds it up over all gradients.
#include <cmath>

#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  user_check(!inputs.empty(), "[count_nonfinite] takes at least one tensor");
  for (const TensorType& input : inputs) check_floating("count_nonfinite", "tensor", input);
  return {{{1}, DType::f32}};
}

void reference(const KernelArgs& args) {
  int64_t count = 0;
  for (const TensorRef& input : args.inputs) {
    with_float_type(input.type.dtype, [&]<class T>(TypeTag<T>) {
      const T* x = input.as<T>();
      for (int64_t i = 0; i < input.elements(); ++i) count += !std::isfinite(widen(x[i]));
    });
  }
  store(args.outputs[0].as<float>(), 0, static_cast<float>(count), args.adds_into(0));
}

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}}},
          {.inputs = {{{3000}, DType::f16}}, .accumulate = 1},
          {.inputs = {{{70}}, {{3000}, DType::bf16}, {{1}, DType::f16}, {{64, 33}}}}};
}

}  // namespace

extern const OpDef op_count_nonfinite{
    .name = "count_nonfinite",
    .summary = "number of elements that are infinite or NaN",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .accumulates = 1,
};

}  // namespace thimble
