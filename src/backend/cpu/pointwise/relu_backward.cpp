// relu_backward: one pass.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_pairs(args, begin, end, [](float y, float dy) { return y > 0 ? dy : 0; });
}

}  // namespace

extern const CpuKernel cpu_relu_backward{"relu_backward", elementwise<loop>};

}  // namespace thimble
