// silu: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return SiluGate::value(x); });
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_elementwise(s, loop, 9); }

}  // namespace

extern const CpuKernel cpu_silu;
const CpuKernel cpu_silu{"silu", make};

}  // namespace thimble
