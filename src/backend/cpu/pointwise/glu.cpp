// glu: a row at a time.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.outputs[0].type.shape.back();
  with_gate<CpuGates>(
      gate_of("glu", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        for (int64_t r = begin; r < end; ++r) {
          const float* a = args.inputs[0].as<const float>() + r * 2 * columns;
          const float* b = a + columns;
          map_range(args.outputs[0].as<float>() + r * columns, 0, columns, false,
                    [=](int64_t c) { return a[c] * gate.value(b[c]); });
        }
      });
}

}  // namespace

extern const CpuKernel cpu_glu{"glu", by_rows<loop, 8>};

}  // namespace thimble
