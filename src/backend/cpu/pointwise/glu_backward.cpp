// glu_backward: a row at a time. dx may be x.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t columns = args.inputs[1].type.shape.back();
  const bool add = args.adds_into(0);
  with_gate<CpuGates>(
      gate_of("glu_backward", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        for (int64_t r = begin; r < end; ++r) {
          const float* a = args.inputs[0].as<const float>() + r * 2 * columns;
          const float* b = a + columns;
          const float* dy = args.inputs[1].as<const float>() + r * columns;
          float* da = args.outputs[0].as<float>() + r * 2 * columns;
          float* db = da + columns;
#pragma GCC ivdep
          for (int64_t c = 0; c < columns; ++c) {
            const float to_a = dy[c] * gate.value(b[c]);
            const float to_b = dy[c] * a[c] * gate.slope(b[c]);
            da[c] = add ? da[c] + to_a : to_a;
            db[c] = add ? db[c] + to_b : to_b;
          }
        }
      });
}

}  // namespace

extern const CpuKernel cpu_glu_backward{"glu_backward", by_rows<loop, 16>};

}  // namespace thimble
