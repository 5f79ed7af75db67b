// gelu: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_gate(
      gelu_of("gelu", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        map_unary(args, begin, end, [=](float x) { return gate.value(x); });
      });
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_elementwise(s, loop, 12); }

}  // namespace

extern const CpuKernel cpu_gelu;
const CpuKernel cpu_gelu{"gelu", make};

}  // namespace thimble
