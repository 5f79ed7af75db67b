// gelu_backward: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_gate<CpuGates>(
      gelu_of("gelu_backward", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        map_pairs(args, begin, end, [=](float x, float dy) { return dy * gate.slope(x); });
      });
}

}  // namespace

extern const CpuKernel cpu_gelu_backward{"gelu_backward", elementwise<loop, 14>};

}  // namespace thimble
