// fill: gradients and counters begin here, so zeros matter most.
#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto value = static_cast<float>(args.attrs->real("value"));
  map_range(args.outputs[0].as<float>(), begin, end, false, [=](int64_t) { return value; });
}

}  // namespace

extern const CpuKernel cpu_fill{"fill", elementwise<loop>};

}  // namespace thimble
