// whole(x) -> y: the nearest whole numbers, in i32; those beyond its range are its ends. For labels
// and numbers of rows that a net computes: no gradient.
#include <algorithm>
#include <cmath>

#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/samples.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("whole", inputs, 1);
  check_floating("whole", "x", inputs[0]);
  return {{inputs[0].shape, DType::i32}};
}

void reference(const KernelArgs& args) {
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    int32_t* y = args.outputs[0].as<int32_t>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      const double number = std::nearbyint(static_cast<double>(x[i]));
      y[i] = std::isnan(number)
                 ? 0
                 : static_cast<int32_t>(std::clamp(number, -2147483648.0, 2147483647.0));
    }
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{3, 40}}}},
      {.inputs = {{{37}, DType::bf16}}},
      {.inputs = {{{65}, DType::f16}}},
  };
}

}  // namespace

extern const OpDef op_whole{
    .name = "whole",
    .summary = "the nearest whole numbers, in i32",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .rows = rows_by_element,
};

}  // namespace thimble
