// sub: one pass; operands may repeat.
#include "backend/cpu/pointwise/binary.h"

namespace thimble {
namespace {

constexpr auto kCombine = [](float a, float b) { return a - b; };

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  combine_range(args, begin, end, kCombine);
}
THIMBLE_FOR_EACH_ISA void rows(RowOperand a, RowOperand b, int64_t count, bool add, float* y) {
  combine_row(a, b, count, add, y, kCombine);
}

}  // namespace

extern const CpuKernel cpu_sub{"sub", binary<loop, rows>};

}  // namespace thimble
