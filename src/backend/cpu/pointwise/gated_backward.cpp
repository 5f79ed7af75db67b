// gated_backward: both gradients in one pass. They may lie where any two of the inputs do.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/gates.h"

namespace thimble {
namespace {

// Whether a gradient is added is known before the loop: a read that may not happen does not
// vectorise.
template <bool kAddA, bool kAddB, class Map>
THIMBLE_INLINE void map_both(const KernelArgs& args, int64_t begin, int64_t end, const Map& map) {
  const auto* a = args.inputs[0].as<const float>();
  const auto* b = args.inputs[1].as<const float>();
  const auto* dy = args.inputs[2].as<const float>();
  auto *da = args.outputs[0].as<float>(), *db = args.outputs[1].as<float>();
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const auto [to_a, to_b] = map(a[i], b[i], dy[i]);
    da[i] = kAddA ? da[i] + to_a : to_a;
    db[i] = kAddB ? db[i] + to_b : to_b;
  }
}

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  struct Both {
    float to_a, to_b;
  };
  const bool add_a = args.adds_into(0), add_b = args.adds_into(1);
  with_gate<CpuGates>(
      gate_of("gated_backward", *args.attrs), [&](auto gate) __attribute__((always_inline)) {
        const auto map = [=](float a, float b, float dy) __attribute__((always_inline)) {
          return Both{dy * b * gate.slope(a), dy * gate.value(a)};
        };
        if (add_a && add_b) return map_both<true, true>(args, begin, end, map);
        if (add_a) return map_both<true, false>(args, begin, end, map);
        if (add_b) return map_both<false, true>(args, begin, end, map);
        map_both<false, false>(args, begin, end, map);
      });
}

}  // namespace

extern const CpuKernel cpu_gated_backward{"gated_backward", elementwise<loop, 16>};

}  // namespace thimble
