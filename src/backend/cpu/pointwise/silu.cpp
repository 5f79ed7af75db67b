// silu: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return CpuGates::Silu::value(x); });
}

}  // namespace

extern const CpuKernel cpu_silu{"silu", elementwise<loop, 9>};

}  // namespace thimble
