// batch_norm(x [...,C], mean [C], var [C], gamma [C], beta [C]) -> y like x:
//   y = act(gamma * (x - mean) / sqrt(var + epsilon) + beta)
// attrs epsilon (1e-5), act (none or relu), training (1: mean and var are batch_norm_stats(x), and
// the gradient goes through them; 0: they are constants), ranks (1; else mean and var are of all
// ranks' x, and so is the gradient).
#include "graph/builder.h"
#include "ops/normalise/batch_norm_channel.h"
#include "ops/pointwise/activation.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("batch_norm", inputs, 5);
  check_batch_norm("batch_norm", inputs);
  fuses_relu("batch_norm", attrs);
  return {inputs[0]};
}

// Through statistics that all ranks have in common: what a rank alone would make of constants, less
// an affine function of x, whose two numbers a channel come from the sums of all ranks.
//   dx = gamma rstd (d - mean(d) - normalized(x) mean(d normalized(x)))
void gradient_over_ranks(GradientBuilder& g, int64_t ranks) {
  Builder& b = g.build();
  const TensorType x = b.type(g.input(0));
  const int64_t channels = x.shape.back();
  const Attrs constants = {{"epsilon", g.attrs().real("epsilon", 1e-5)}, {"training", int64_t{0}}};
  Attrs masked = constants;
  masked.set("act", std::string(g.attrs().text("act", "none")));
  const std::vector<ValueId> d =
      b.apply("batch_norm_backward",
              {g.input(0), g.input(1), g.input(2), g.input(3), g.input(4), g.upstream()}, masked);
  if (g.wants(3)) g.give(3, d[1]);
  if (g.wants(4)) g.give(4, d[2]);
  if (!g.wants(0)) return;
  const TensorType row = {{1, channels}, DType::f32}, channel = {{channels}, DType::f32};
  const ValueId zero = b.constant(0, channel);
  const ValueId rate = b.op(
      "reshape",
      {b.op("batch_norm", {b.constant(1, row), zero, g.input(2), g.input(3), zero}, constants)},
      {{"shape", std::vector<int64_t>{channels}}});  // gamma rstd
  const double count = static_cast<double>(x.elements() / channels * ranks);
  const auto share = [&](ValueId sum) {
    const ValueId all = b.op("all_reduce", {sum}, {{"ranks", ranks}});
    return b.op("scale", {b.op("mul", {all, rate})}, {{"factor", 1 / count}});
  };
  const ValueId slope = share(d[1]), shift = share(d[2]);
  const ValueId through =
      b.op("batch_norm", {g.input(0), g.input(1), g.input(2), slope, shift}, constants);
  g.give(0, b.op("sub", {d[0], through}));
}

// Reads x and never y: the mask of a relu is recomputed.
void gradient(GradientBuilder& g) {
  const int64_t ranks = g.attrs().integer("ranks", 1);
  if (ranks > 1) return gradient_over_ranks(g, ranks);
  const std::vector<ValueId> d = g.build().apply(
      "batch_norm_backward",
      {g.input(0), g.input(1), g.input(2), g.input(3), g.input(4), g.upstream()}, g.attrs());
  if (g.wants(0)) g.give(0, d[0]);
  if (g.wants(3)) g.give(3, d[1]);
  if (g.wants(4)) g.give(4, d[2]);
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const bool relu = fuses_relu("batch_norm", *args.attrs);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* x = args.inputs[0].as<T>();
    T* y = args.outputs[0].as<T>();
    for (int64_t c = 0; c < rows.columns; ++c) {
      const auto channel = norm_channel<T>(args, c);
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = r * rows.columns + c;
        const auto z = channel.pre_activation(widen(x[at]));
        store(y, at, relu && z <= 0 ? 0 : z);
      }
    }
  });
}

template <bool kRelu>
ValueId normalize_with_own_statistics(Builder& build, std::span<const ValueId> in) {
  const std::vector<ValueId> stats = build.apply("batch_norm_stats", {in[0]});
  return build.op("batch_norm", {in[0], stats[0], stats[1], in[3], in[4]},
                  {{"act", std::string(kRelu ? "relu" : "none")}});
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  const auto add = [&](Shape x, const char* act, bool training) {
    const Shape channels = {x.back()};
    result.push_back({.inputs = {{x}, {channels}, {channels}, {channels}, {channels}},
                      .attrs = {{"act", std::string(act)}, {"training", int64_t{training}}},
                      .fills = {{}, {}, {Fill::Kind::uniform, 0.5, 2}},
                      .differentiate = {0, 3, 4}});
    if (!training) return;
    result.back().build = act == std::string_view("relu") ? normalize_with_own_statistics<true>
                                                          : normalize_with_own_statistics<false>;
  };
  add({6, 7}, "none", true);
  add({6, 7}, "relu", true);
  add({2, 3, 5, 16}, "relu", true);
  add({6, 7}, "none", false);
  add({3, 2, 3, 5}, "relu", false);
  return result;
}

}  // namespace

extern const OpDef op_batch_norm{
    .name = "batch_norm",
    .summary = "normalises each channel with given statistics, scales, shifts, and may apply relu",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = flops_per_input<4>,
    .samples = samples,
    .rows = rows_by_element,
    .in_place = {{0, 0}},
    .nonnegative = [](const Attrs& attrs) { return fuses_relu("batch_norm", attrs); },
    .normalizes = true,
};

}  // namespace thimble
