// softmax: a row at a time; it stays in cache between the maximum, the sum and the result.
#include <cmath>

#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].type.shape.back();
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.inputs[0].as<const float>() + r * columns;
    float* y = args.outputs[0].as<float>() + r * columns;
    const float largest = row_maximum(x, columns);
    if (args.attrs->integer("log", 0) != 0) {
      const double sum = row_sum(columns, [=](int64_t c) { return vector_exp(x[c] - largest); });
      const float shift = static_cast<float>(static_cast<double>(largest) + std::log(sum));
      map_range(y, 0, columns, false, [=](int64_t c) { return x[c] - shift; });
      continue;
    }
    map_range(y, 0, columns, false, [=](int64_t c) { return vector_exp(x[c] - largest); });
    const auto share = static_cast<float>(1 / row_sum(columns, [=](int64_t c) { return y[c]; }));
    map_range(y, 0, columns, false, [=](int64_t c) { return y[c] * share; });
  }
}

}  // namespace

extern const CpuKernel cpu_softmax{"softmax", by_rows<loop, 8>};

}  // namespace thimble
