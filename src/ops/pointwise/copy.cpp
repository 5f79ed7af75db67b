// copy(x) -> y = x, any dtype. Added into, it is `y += x`.
#include "graph/builder.h"
#include "ops/row_rules.h"
#include "ops/shape/strided.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("copy", inputs, 1);
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  if (g.wants(0)) g.give(0, g.upstream());
}

void reference(const KernelArgs& args) {
  with_any_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t i = 0; i < args.outputs[0].elements(); ++i) {
      move_element(y, i, x[i], args.adds_into(0));
    }
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{2, 3, 4, 5}}}, .differentiate = {0}},
      {.inputs = {{{37}, DType::i32}}, .fills = {{Fill::Kind::labels, 0, 1000}}},
      {.inputs = {{{3, 64}}}, .accumulate = 1},
  };
}

}  // namespace

extern const OpDef op_copy{
    .name = "copy",
    .summary = "the same tensor at other bytes",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .rows = rows_of_linear,
    .in_place = {{0, 0}},
    .accumulates = 1,
};

}  // namespace thimble
