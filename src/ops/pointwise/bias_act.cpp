// bias_act(x [...,C], bias [C]) -> y = act(x + bias); attrs act (none, relu, sigmoid, tanh,
// leaky_relu), slope (of leaky_relu).
#include "graph/builder.h"
#include "ops/pointwise/activation.h"
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("bias_act", inputs, 2);
  check_rows("bias_act", inputs[0]);
  check_channels("bias_act", "bias", inputs[1], inputs[0]);
  activation_of("bias_act", attrs);
  return {inputs[0]};
}

void gradient(GradientBuilder& g) {
  std::vector<ValueId> reads = {g.upstream()};
  if (activation_of("bias_act", g.attrs()).kind != Activation::Kind::none) {
    reads.push_back(g.output());
  }
  const std::vector<ValueId> d = g.build().apply("bias_act_backward", reads, g.attrs());
  if (g.wants(0)) g.give(0, d[0]);
  if (g.wants(1)) g.give(1, d[1]);
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const Activation act = activation_of("bias_act", *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    const T* bias = args.inputs[1].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t r = 0; r < rows.count; ++r) {
      for (int64_t c = 0; c < rows.columns; ++c) {
        const int64_t at = r * rows.columns + c;
        store(y, at, act(widen(x[at]) + widen(bias[c])));
      }
    }
  });
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const char* act : {"none", "relu", "sigmoid", "tanh", "leaky_relu"}) {
    result.push_back({.inputs = {{{5, 7}}, {{7}}},
                      .attrs = {{"act", std::string(act)}, {"slope", 0.1}},
                      .differentiate = {0, 1}});
  }
  result.push_back({.inputs = {{{2, 3, 3, 16}}, {{16}}},
                    .attrs = {{"act", std::string("relu")}},
                    .differentiate = {0, 1}});
  result.push_back({.inputs = {{{1}}, {{1}}}, .differentiate = {0, 1}});
  return result;
}

}  // namespace

extern const OpDef op_bias_act{
    .name = "bias_act",
    .summary = "adds a bias per channel and applies an activation",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<2>,
    .samples = samples,
    .rows = rows_by_element,
    .in_place = {{0, 0}},
    .nonnegative =
        [](const Attrs& attrs) {
          return activation_of("bias_act", attrs).kind == Activation::Kind::relu;
        },
    .sums = 1,
};

}  // namespace thimble
