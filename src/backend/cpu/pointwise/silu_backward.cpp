// silu_backward: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_pairs(args, begin, end, [](float x, float dy) { return dy * CpuGates::Silu::slope(x); });
}

}  // namespace

extern const CpuKernel cpu_silu_backward{"silu_backward", elementwise<loop, 10>};

}  // namespace thimble
