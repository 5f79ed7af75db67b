// sigmoid: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/vector_math.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  map_unary(args, begin, end, [](float x) { return vector_sigmoid(x); });
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_elementwise(s, loop, 8); }

}  // namespace

extern const CpuKernel cpu_sigmoid;
const CpuKernel cpu_sigmoid{"sigmoid", make};

}  // namespace thimble
