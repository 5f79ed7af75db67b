// leaky_relu_backward: one pass.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto slope = static_cast<float>(args.attrs->real("slope", 0.01));
  map_pairs(args, begin, end, [=](float y, float dy) { return y > 0 ? dy : slope * dy; });
}

}  // namespace

extern const CpuKernel cpu_leaky_relu_backward{"leaky_relu_backward", elementwise<loop>};

}  // namespace thimble
