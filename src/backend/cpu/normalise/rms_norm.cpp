// rms_norm: a row at a time; sum of squares and result while the row is in cache.
#include <cmath>

#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].type.shape.back();
  const float* gamma = args.inputs[1].as<const float>();
  const double epsilon = args.attrs->real("epsilon", 1e-5);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.inputs[0].as<const float>() + r * columns;
    const double squares = row_sum(columns, [=](int64_t c) { return x[c] * x[c]; });
    const auto rstd =
        static_cast<float>(1 / std::sqrt(squares / static_cast<double>(columns) + epsilon));
    args.outputs[1].as<float>()[r] = rstd;
    map_range(args.outputs[0].as<float>() + r * columns, 0, columns, false,
              [=](int64_t c) { return x[c] * rstd * gamma[c]; });
  }
}

}  // namespace

extern const CpuKernel cpu_rms_norm{"rms_norm", by_rows<loop, 3>};

}  // namespace thimble
