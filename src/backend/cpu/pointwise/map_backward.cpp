// map_backward: one pass over the argument and the gradient.
#include "backend/cpu/pointwise/elementwise.h"
#include "ops/pointwise/map_functions.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_map(
      *args.attrs, [&](auto f) __attribute__((always_inline)) {
        map_pairs(args, begin, end, [=](float x, float dy) { return dy * f.slope(x); });
      });
}

}  // namespace

extern const CpuKernel cpu_map_backward{"map_backward", elementwise<loop, 10>};

}  // namespace thimble
