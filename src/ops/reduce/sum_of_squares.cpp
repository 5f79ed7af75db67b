// sum_of_squares(x) -> f32 [1]. Added into one number, over all gradients, it is their squared
// norm.
#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_one_floating("sum_of_squares", inputs);
  return {{{1}, DType::f32}};
}

void reference(const KernelArgs& args) {
  double sum = 0;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      const double x = static_cast<double>(args.inputs[0].as<T>()[i]);
      sum += x * x;
    }
  });
  store(args.outputs[0].as<float>(), 0, static_cast<float>(sum), args.adds_into(0));
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{5, 7}}}}, {.inputs = {{{2, 3, 4, 65}}}}, {.inputs = {{{37}}}, .accumulate = 1}};
}

}  // namespace

extern const OpDef op_sum_of_squares{
    .name = "sum_of_squares",
    .summary = "the squared norm of a tensor",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<2>,
    .samples = samples,
    .accumulates = 1,
};

}  // namespace thimble
