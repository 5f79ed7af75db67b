// leaky_relu: one pass; keeps NaN.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto slope = static_cast<float>(args.attrs->real("slope", 0.01));
  map_unary(args, begin, end, [=](float x) { return x < 0 ? slope * x : x; });
}

}  // namespace

extern const CpuKernel cpu_leaky_relu{"leaky_relu", elementwise<loop>};

}  // namespace thimble
