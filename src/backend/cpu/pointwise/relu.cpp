// relu: one pass; keeps NaN.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return x < 0 ? 0 : x; });
}

}  // namespace

extern const CpuKernel cpu_relu{"relu", elementwise<loop>};

}  // namespace thimble
