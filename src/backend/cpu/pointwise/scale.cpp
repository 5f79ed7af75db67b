// scale: one pass.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto factor = static_cast<float>(args.attrs->real("factor"));
  map_unary(args, begin, end, [=](float x) { return factor * x; });
}

}  // namespace

extern const CpuKernel cpu_scale{"scale", elementwise<loop>};

}  // namespace thimble
