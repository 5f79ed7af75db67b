// map_backward: one pass over the argument and the gradient. Small whole powers are products, which
// vectorise.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/whole_power.h"
#include "ops/pointwise/map_functions.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void power(const KernelArgs& args, int64_t begin, int64_t end) {
  const auto exponent = static_cast<float>(args.attrs->real("a", 0));
  with_whole_power(
      args.attrs->real("a", 0) - 1, [&](auto n) __attribute__((always_inline)) {
        map_pairs(args, begin, end, [=](float x, float dy) {
          return dy * (exponent * whole_power<decltype(n)::value>(x));
        });
      });
}

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_map(
      *args.attrs, [&](auto f) __attribute__((always_inline)) {
        map_pairs(args, begin, end, [=](float x, float dy) { return dy * f.slope(x); });
      });
}

std::unique_ptr<Kernel> make(const Signature& s) {
  return make_elementwise(s, is_whole_power(s.attrs, 1) ? power : loop, 10);
}

}  // namespace

extern const CpuKernel cpu_map_backward{"map_backward", make};

}  // namespace thimble
