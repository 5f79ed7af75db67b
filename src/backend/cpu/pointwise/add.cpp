// add: one pass; a bias or a scalar repeats.
#include "backend/cpu/pointwise/binary.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  combine_range(args, begin, end, [](float a, float b) { return a + b; });
}

}  // namespace

extern const CpuKernel cpu_add{"add", binary<loop>};

}  // namespace thimble
