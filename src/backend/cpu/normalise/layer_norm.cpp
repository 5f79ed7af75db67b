// layer_norm: a row at a time; mean, variance and result while the row is in cache.
#include <cmath>

#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].type.shape.back();
  const float* gamma = args.inputs[1].as<const float>();
  const float* beta = args.inputs[2].as<const float>();
  const double epsilon = args.attrs->real("epsilon", 1e-5);
  const auto count = static_cast<double>(columns);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.inputs[0].as<const float>() + r * columns;
    float* y = args.outputs[0].as<float>() + r * columns;
    const auto mean = static_cast<float>(row_sum(columns, [=](int64_t c) { return x[c]; }) / count);
    const double squares =
        row_sum(columns, [=](int64_t c) { return (x[c] - mean) * (x[c] - mean); });
    const auto rstd = static_cast<float>(1 / std::sqrt(squares / count + epsilon));
    args.outputs[1].as<float>()[r] = mean;
    args.outputs[2].as<float>()[r] = rstd;
    map_range(y, 0, columns, false,
              [=](int64_t c) { return (x[c] - mean) * rstd * gamma[c] + beta[c]; });
  }
}

}  // namespace

extern const CpuKernel cpu_layer_norm{"layer_norm", by_rows<loop, 4>};

}  // namespace thimble
