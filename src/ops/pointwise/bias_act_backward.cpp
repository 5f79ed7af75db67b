// bias_act_backward(dy [...,C] [, y]) -> (dx, dbias [C]); attrs of bias_act. The gradient of
// bias_act, from its result alone; without an activation y is not an input at all.
#include "ops/pointwise/activation.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  const Activation act = activation_of("bias_act_backward", attrs);
  const bool reads_result = act.kind != Activation::Kind::none;
  check_inputs("bias_act_backward", inputs, reads_result ? 2 : 1);
  check_rows("bias_act_backward", inputs[0]);
  if (reads_result) check_type("bias_act_backward", "result", inputs[1], inputs[0]);
  return {inputs[0], channels_of(inputs[0], inputs[0].dtype)};
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const Activation act = activation_of("bias_act_backward", *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* dy = args.inputs[0].as<T>();
    const T* y = args.inputs.size() > 1 ? args.inputs[1].as<T>() : nullptr;
    T* dx = args.outputs[0].as<T>();
    T* dbias = args.outputs[1].as<T>();
    for (int64_t c = 0; c < rows.columns; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = r * rows.columns + c;
        Accumulator<T> d = widen(dy[at]);
        if (y != nullptr) d *= act.derivative(widen(y[at]));
        sum += static_cast<double>(d);
        store(dx, at, d);
      }
      store(dbias, c, static_cast<Accumulator<T>>(sum), args.adds_into(1));
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const char* act : {"relu", "sigmoid", "tanh", "leaky_relu"}) {
    result.push_back(
        {.inputs = {{{5, 7}}, {{5, 7}}}, .attrs = {{"act", std::string(act)}, {"slope", 0.1}}});
  }
  result.push_back({.inputs = {{{5, 7}}}});
  result.push_back({.inputs = {{{2, 3, 3, 16}}}, .accumulate = 2});
  return result;
}

}  // namespace

extern const OpDef op_bias_act_backward{
    .name = "bias_act_backward",
    .summary = "gradient of bias_act, from its result",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<3>,
    .samples = samples,
    .in_place = {{0, 0}},
    .reading =
        [](const Attrs& attrs, size_t input) {
          using Kind = Activation::Kind;
          const Kind kind = activation_of("bias_act_backward", attrs).kind;
          if (input != 1) return Reading::linear;
          return kind == Kind::relu || kind == Kind::leaky_relu ? Reading::sign : Reading::curved;
        },
    .accumulates = 2,
};

}  // namespace thimble
