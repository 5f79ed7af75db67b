// rms_norm_backward(x [...,C], rstd [rows], gamma [C], dy) -> (dx, dgamma).
#include "ops/reading.h"
#include "ops/reduce/last_axis.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("rms_norm_backward", inputs, 4);
  check_rows("rms_norm_backward", inputs[0]);
  check_type("rms_norm_backward", "rstd", inputs[1],
             {{rows_of(inputs[0].shape).count}, statistics_dtype(inputs[0].dtype)});
  check_scales("rms_norm_backward", "gamma", inputs[2], inputs[0]);
  check_type("rms_norm_backward", "gradient", inputs[3], inputs[0]);
  return {inputs[0], inputs[2]};
}

void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* x = args.inputs[0].as<T>();
    const Real* rstd = args.inputs[1].as<Real>();
    const Real* gamma = args.inputs[2].as<Real>();
    const T* dy = args.inputs[3].as<T>();
    for (int64_t c = 0; c < rows.columns; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = r * rows.columns + c;
        sum += static_cast<double>(widen(dy[at]) * widen(x[at]) * rstd[r]);
      }
      store(args.outputs[1].as<Real>(), c, static_cast<Real>(sum), args.adds_into(1));
    }
    for (int64_t r = 0; r < rows.count; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < rows.columns; ++c) {
        const int64_t at = r * rows.columns + c;
        sum += static_cast<double>(widen(dy[at]) * gamma[c] * widen(x[at]) * rstd[r]);
      }
      const Real mean = static_cast<Real>(sum / static_cast<double>(rows.columns));
      for (int64_t c = 0; c < rows.columns; ++c) {
        const int64_t at = r * rows.columns + c;
        store(args.outputs[0].as<T>(), at,
              rstd[r] * (widen(dy[at]) * gamma[c] - widen(x[at]) * rstd[r] * mean),
              args.adds_into(0));
      }
    }
  });
}

std::vector<Sample> samples() {
  const auto sample = [](Shape x, uint32_t accumulate) {
    return Sample{.inputs = {{x}, {{rows_of(x).count}}, {{x.back()}}, {x}},
                  .fills = {{}, {Fill::Kind::uniform, 0.5, 2}},
                  .accumulate = accumulate};
  };
  return {sample({5, 7}, 0), sample({2, 3, 32}, 0), sample({33}, 0), sample({5, 7}, 2),
          sample({6, 16}, 3)};
}

}  // namespace

extern const OpDef op_rms_norm_backward{
    .name = "rms_norm_backward",
    .summary = "gradient of rms_norm",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<10>,
    .samples = samples,
    .in_place = {{0, 3}},
    .reading = reads<Reading::exact, 1>,
    .accumulates = 3,
};

}  // namespace thimble
