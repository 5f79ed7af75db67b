// cumprod(x [...,C]) -> y like x: y[c] is the product of x[0] to x[c] of its row. Products are in
// the type of sums; each element is rounded once.
#include "graph/builder.h"
#include "ops/checks.h"
#include "ops/reading.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_one_floating("cumprod", inputs);
  user_check(inputs[0].shape.rank() >= 1, "[cumprod] wants a tensor [...,C], got {}",
             to_string(inputs[0]));
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) g.give(0, g.build().op("cumprod_backward", {g.input(0), g.upstream()}));
}

void reference(const KernelArgs& args) {
  const int64_t width = args.inputs[0].type.shape.back();
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    Accumulator<T> product = 1;
    for (int64_t i = 0; i < args.inputs[0].elements(); ++i) {
      product = (i % width == 0 ? 1 : product) * widen(x[i]);
      store(args.outputs[0].as<T>(), i, product);
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, Fill fill) {
    return Sample{.inputs = {{x}}, .fills = {fill}, .differentiate = {0}};
  };
  return {sample({3, 5}, {}), sample({2, 3, 4}, {Fill::Kind::zeros}),
          sample({37}, {Fill::Kind::uniform, 0.5, 1.5}), sample({4, 1}, {})};
}

}  // namespace

extern const OpDef op_cumprod{
    .name = "cumprod",
    .summary = "products of each row up to each of its elements",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<1>,
    .samples = samples,
    .rows = rows_by_slice<1>,
    .in_place = {{0, 0}},
    .reading = reads<Reading::curved, 0>,
};

}  // namespace thimble
