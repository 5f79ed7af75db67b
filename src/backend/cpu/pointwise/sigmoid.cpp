// sigmoid: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/vector_math.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return vector_sigmoid(x); });
}

}  // namespace

extern const CpuKernel cpu_sigmoid{"sigmoid", elementwise<loop, 8>};

}  // namespace thimble
