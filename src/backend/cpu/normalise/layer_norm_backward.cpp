// layer_norm_backward: a row at a time; the gradients of scale and shift are summed along the way.
#include "backend/cpu/normalise/row_gradients.h"
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/softmax_rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, const RowGradients& g) {
  const int64_t columns = g.columns;
  const float* gamma = args.inputs[3].as<const float>();
  const float share = 1 / static_cast<float>(columns);
  double* __restrict dgamma = g.dgamma;
  double* __restrict dbeta = g.dbeta;
  for (int64_t r = 0; r < g.rows; ++r) {
    const float* x = g.x + r * columns;
    const float* dy = g.dy + r * columns;
    const float mean = args.inputs[1].as<const float>()[g.first + r];
    const float rstd = args.inputs[2].as<const float>()[g.first + r];
    for (int64_t c = 0; c < columns; ++c) {
      dgamma[c] += static_cast<double>(dy[c] * ((x[c] - mean) * rstd));
      dbeta[c] += static_cast<double>(dy[c]);
    }
    const float mean_d =
        static_cast<float>(row_sum(columns, [=](int64_t c) { return dy[c] * gamma[c]; })) * share;
    const float mean_d_normalized =
        static_cast<float>(row_sum(
            columns, [=](int64_t c) { return dy[c] * gamma[c] * ((x[c] - mean) * rstd); })) *
        share;
    map_range(g.dx + r * columns, 0, columns, args.adds_into(0), [=](int64_t c) {
      const float normalized = (x[c] - mean) * rstd;
      return rstd * (dy[c] * gamma[c] - mean_d - normalized * mean_d_normalized);
    });
  }
}

}  // namespace

extern const CpuKernel cpu_layer_norm_backward{"layer_norm_backward", row_gradients<loop, 2>};

}  // namespace thimble
