// gated: one pass. y may be a or b.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_gate<CpuGates>(
      gate_of("gated", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        map_pairs(args, begin, end, [=](float a, float b) { return gate.value(a) * b; });
      });
}

}  // namespace

extern const CpuKernel cpu_gated{"gated", elementwise<loop, 8>};

}  // namespace thimble
