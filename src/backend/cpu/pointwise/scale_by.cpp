// scale_by: one pass.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const float factor = *args.inputs[1].as<const float>();
  map_unary(args, begin, end, [=](float x) { return factor * x; });
}

}  // namespace

extern const CpuKernel cpu_scale_by{"scale_by", elementwise<loop>};

}  // namespace thimble
