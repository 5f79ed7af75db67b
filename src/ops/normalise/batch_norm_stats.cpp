// batch_norm_stats(x [...,C]) -> (mean [C], var [C]): mean and biased variance over all axes but
// the last, in the statistics dtype. It has no gradient of its own: batch_norm's is the whole one.
#include "ops/reduce/last_axis.h"
#include "ops/reference.h"
#include "ops/row_rules.h"
#include "ops/work.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs&) {
  check_inputs("batch_norm_stats", inputs, 1);
  check_rows("batch_norm_stats", inputs[0]);
  const TensorType statistics = channels_of(inputs[0], statistics_dtype(inputs[0].dtype));
  return {statistics, statistics};
}

// Two passes: the square of a mean never cancels against the mean of squares.
void reference(const KernelArgs& args) {
  const Rows rows = rows_of(args.inputs[0].type.shape);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    using Real = Accumulator<T>;
    const T* x = args.inputs[0].as<T>();
    const double count = static_cast<double>(rows.count);
    for (int64_t c = 0; c < rows.columns; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < rows.count; ++r) {
        sum += static_cast<double>(x[r * rows.columns + c]);
      }
      const double mean = sum / count;
      double squares = 0;
      for (int64_t r = 0; r < rows.count; ++r) {
        const double deviation = static_cast<double>(x[r * rows.columns + c]) - mean;
        squares += deviation * deviation;
      }
      store(args.outputs[0].as<Real>(), c, static_cast<Real>(mean));
      store(args.outputs[1].as<Real>(), c, static_cast<Real>(squares / count));
    }
  });
}

std::vector<Sample> samples() {
  return {
      {.inputs = {{{5, 7}}}},
      {.inputs = {{{4, 5, 6, 16}}}, .fills = {{Fill::Kind::normal, 20, 20}}},
      {.inputs = {{{3, 7, 7, 33}}}},
  };
}

}  // namespace

extern const OpDef op_batch_norm_stats{
    .name = "batch_norm_stats",
    .summary = "mean and biased variance per channel",
    .infer = infer,
    .reference = reference,
    .work = flops_per_input<4>,
    .samples = samples,
    .rows = rows_of_statistics,
    .mixes_rows = true,
};

}  // namespace thimble
