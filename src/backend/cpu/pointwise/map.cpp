// map: one pass. Small whole powers are products, which vectorise.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/whole_power.h"
#include "ops/pointwise/map_functions.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void power(const KernelArgs& args, int64_t begin, int64_t end) {
  with_whole_power(
      args.attrs->real("a", 0), [&](auto n) __attribute__((always_inline)) {
        map_unary(args, begin, end, [](float x) { return whole_power<decltype(n)::value>(x); });
      });
}

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  with_map(
      *args.attrs, [&](auto f) __attribute__((always_inline)) {
        map_unary(args, begin, end, [=](float x) { return f.value(x); });
      });
}

std::unique_ptr<Kernel> make(const Signature& s) {
  return make_elementwise(s, is_whole_power(s.attrs, 0) ? power : loop, 10);
}

}  // namespace

extern const CpuKernel cpu_map{"map", make};

}  // namespace thimble
