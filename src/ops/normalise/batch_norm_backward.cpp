// batch_norm_backward(x, mean, var, gamma, beta, dy) -> (dx, dgamma [C], dbeta [C]); attrs of
// batch_norm. With training=1 the statistics are functions of x and dx goes through them.
#include "ops/normalise/batch_norm_channel.h"
#include "ops/pointwise/activation.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("batch_norm_backward", inputs, 6);
  check_batch_norm("batch_norm_backward", inputs);
  check_type("batch_norm_backward", "gradient", inputs[5], inputs[0]);
  fuses_relu("batch_norm_backward", attrs);
  return {inputs[0], inputs[3], inputs[4]};
}

// Each channel is reduced before any of it is overwritten.
void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  const bool relu = fuses_relu("batch_norm_backward", *args.attrs);
  const bool training = args.attrs->integer("training", 1) != 0;
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* x = args.inputs[0].as<T>();
    const T* dy = args.inputs[5].as<T>();
    for (int64_t c = 0; c < rows.columns; ++c) {
      const auto channel = norm_channel<T>(args, c);
      const auto masked = [&](int64_t at) {
        return relu && channel.pre_activation(widen(x[at])) <= 0 ? Real{0} : widen(dy[at]);
      };
      double sum = 0, sum_normalized = 0;
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = r * rows.columns + c;
        const Real d = masked(at);
        sum += static_cast<double>(d);
        sum_normalized += static_cast<double>(d * channel.normalized(widen(x[at])));
      }
      const double share = training ? 1 / static_cast<double>(rows.count) : 0;
      const Real mean_d = static_cast<Real>(sum * share);
      const Real mean_d_normalized = static_cast<Real>(sum_normalized * share);
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = r * rows.columns + c;
        const Real through = mean_d + channel.normalized(widen(x[at])) * mean_d_normalized;
        store(args.outputs[0].as<T>(), at, channel.gamma * channel.rstd * (masked(at) - through),
              args.adds_into(0));
      }
      store(args.outputs[1].as<Real>(), c, static_cast<Real>(sum_normalized), args.adds_into(1));
      store(args.outputs[2].as<Real>(), c, static_cast<Real>(sum), args.adds_into(2));
    }
  });
}

// Reduces, then maps: x and dy are read twice.
Work work(const Signature& s) {
  const double passes = 5 + static_cast<double>(s.accumulate & 1u);
  return {11 * static_cast<double>(s.inputs[0].elements()),
          passes * static_cast<double>(s.inputs[0].bytes().count)};
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, const char* act, bool training, uint32_t accumulate) {
    const Shape channels = {x.back()};
    return Sample{.inputs = {{x}, {channels}, {channels}, {channels}, {channels}, {x}},
                  .attrs = {{"act", std::string(act)}, {"training", int64_t{training}}},
                  .fills = {{}, {}, {Fill::Kind::uniform, 0.5, 2}},
                  .accumulate = accumulate};
  };
  return {sample({6, 7}, "none", true, 0), sample({2, 3, 5, 16}, "relu", true, 0),
          sample({3, 2, 3, 5}, "relu", false, 0), sample({6, 7}, "relu", true, 6),
          sample({4, 4, 4, 8}, "none", true, 7)};
}

}  // namespace

extern const OpDef op_batch_norm_backward{
    .name = "batch_norm_backward",
    .summary = "gradient of batch_norm and of the statistics it was given",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .in_place = {{0, 5}, {0, 0}},
    .reading = norm_reading,
    .masks_input =
        [](const Attrs& attrs) { return fuses_relu("batch_norm_backward", attrs) ? 5 : -1; },
    .accumulates = 7,
};

}  // namespace thimble
