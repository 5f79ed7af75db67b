// gelu: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_gate<CpuGates>(
      gelu_of("gelu", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        map_unary(args, begin, end, [=](float x) { return gate.value(x); });
      });
}

}  // namespace

extern const CpuKernel cpu_gelu{"gelu", elementwise<loop, 12>};

}  // namespace thimble
