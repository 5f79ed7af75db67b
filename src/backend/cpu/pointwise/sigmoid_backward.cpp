// sigmoid_backward: one pass.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_pairs(args, begin, end, [](float y, float dy) { return dy * y * (1 - y); });
}

}  // namespace

extern const CpuKernel cpu_sigmoid_backward{"sigmoid_backward", elementwise<loop>};

}  // namespace thimble
