// scale_by(x, factor f32 [1]) -> factor * x: as scale, with a factor that the step computes.
#include "ops/checks.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("scale_by", inputs, 2);
  check_floating("scale_by", "tensor", inputs[0]);
  check_type("scale_by", "factor", inputs[1], {{1}, DType::f32});
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const auto factor = static_cast<Accumulator<T>>(*args.inputs[1].as<float>());
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      store(args.outputs[0].as<T>(), i, factor * widen(args.inputs[0].as<T>()[i]),
            args.adds_into(0));
    }
  });
}

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}, {{1}}}},
          {.inputs = {{{2, 3, 4, 65}}, {{1}}}},
          {.inputs = {{{37}}, {{1}}}, .accumulate = 1}};
}

}  // namespace

extern const OpDef op_scale_by{
    .name = "scale_by",
    .summary = "product with a number that the step computes",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<1>,
    .samples = samples,
    .in_place = {{0, 0}},
    .accumulates = 1,
};

}  // namespace thimble
