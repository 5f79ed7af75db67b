// cumprod_backward(x [...,C], dy) -> dx. Nothing is divided, so that zeros have their gradient, too:
//   dx[c] = p[c] * s[c]   p[c] = x[0] ... x[c-1]   s[c] = dy[c] + x[c+1] * s[c+1]
#include "ops/checks.h"
#include "ops/reading.h"
#include "ops/reference.h"
#include "ops/samples.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("cumprod_backward", inputs, 2);
  check_floating("cumprod_backward", "x", inputs[0]);
  user_check(inputs[0].shape.rank() >= 1, "[cumprod_backward] wants a tensor [...,C], got {}",
             to_string(inputs[0]));
  check_same_type("cumprod_backward", inputs[0], inputs[1]);
  return {inputs[0]};
}

// Of one row: its p.
Bytes reference_workspace(const Signature& s) {
  return TensorType{{s.inputs[0].shape.back()}, statistics_dtype(s.inputs[0].dtype)}.bytes();
}

void reference(const KernelArgs& args) {
  const int64_t width = args.inputs[0].type.shape.back();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T *x = args.inputs[0].as<T>(), *dy = args.inputs[1].as<T>();
    auto* const before = reinterpret_cast<Accumulator<T>*>(args.workspace);
    for (int64_t row = 0; row < args.inputs[0].elements(); row += width) {
      before[0] = 1;
      for (int64_t c = 1; c < width; ++c) before[c] = before[c - 1] * widen(x[row + c - 1]);
      Accumulator<T> sum = 0, next = 0;
      for (int64_t c = width; c-- > 0;) {
        sum = widen(dy[row + c]) + next * sum;
        next = widen(x[row + c]);
        store(args.outputs[0].as<T>(), row + c, before[c] * sum, args.adds_into(0));
      }
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const Shape& shape : {Shape{3, 5}, Shape{37}, Shape{4, 1}, Shape{2, 3, 4}}) {
    result.push_back({.inputs = {{shape}, {shape}}, .fills = {{Fill::Kind::uniform, -1.5, 1.5}}});
  }
  return and_added(std::move(result));
}

}  // namespace

extern const OpDef op_cumprod_backward{
    .name = "cumprod_backward",
    .summary = "gradient of cumprod",
    .infer = infer,
    .reference = reference,
    .reference_workspace = reference_workspace,
    .work = flops_per_output<5>,
    .samples = samples,
    .in_place = {{0, 1}, {0, 0}},
    .reading = reads<Reading::curved, 0>,
    .accumulates = 1,
};

}  // namespace thimble
