// map: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "ops/pointwise/map_functions.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_map(
      *args.attrs, [&](auto f) __attribute__((always_inline)) {
        map_unary(args, begin, end, [=](float x) { return f.value(x); });
      });
}

}  // namespace

extern const CpuKernel cpu_map{"map", elementwise<loop, 10>};

}  // namespace thimble
