// gated_backward: both gradients in one pass. They may lie where any two of the inputs do.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto* a = args.inputs[0].as<const float>();
  const auto* b = args.inputs[1].as<const float>();
  const auto* dy = args.inputs[2].as<const float>();
  auto *da = args.outputs[0].as<float>(), *db = args.outputs[1].as<float>();
  const bool add_a = args.adds_into(0), add_b = args.adds_into(1);
  with_gate<CpuGates>(
      gate_of("gated_backward", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          const float to_a = dy[i] * b[i] * gate.slope(a[i]), to_b = dy[i] * gate.value(a[i]);
          da[i] = add_a ? da[i] + to_a : to_a;
          db[i] = add_b ? db[i] + to_b : to_b;
        }
      });
}

}  // namespace

extern const CpuKernel cpu_gated_backward{"gated_backward", elementwise<loop, 16>};

}  // namespace thimble
