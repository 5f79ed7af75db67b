// softmax_backward: a row at a time.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/reduce/softmax_rows.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[0].type.shape.back();
  for (int64_t r = begin; r < end; ++r) {
    const float* y = args.inputs[0].as<const float>() + r * columns;
    const float* dy = args.inputs[1].as<const float>() + r * columns;
    float* dx = args.outputs[0].as<float>() + r * columns;
    if (args.attrs->integer("log", 0) != 0) {
      const auto total = static_cast<float>(row_sum(columns, [=](int64_t c) { return dy[c]; }));
      map_range(dx, 0, columns, false, [=](int64_t c) { return dy[c] - vector_exp(y[c]) * total; });
      continue;
    }
    const auto sum = static_cast<float>(row_sum(columns, [=](int64_t c) { return y[c] * dy[c]; }));
    map_range(dx, 0, columns, false, [=](int64_t c) { return y[c] * (dy[c] - sum); });
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  return s.accumulate == 0 ? make_rows(s, loop, 2) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_softmax_backward{"softmax_backward", make};

}  // namespace thimble
