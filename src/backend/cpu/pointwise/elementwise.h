// Kernels whose elements do not depend on each other: a loop over a range, on every thread one.
#pragma once

#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/pointwise/staged_loop.h"

namespace thimble {

// Elements [begin, end) of the outputs.
using RangeLoop = UnitLoop;

// In f32, or staged. Inputs of another number of elements than the result are scalars and the like.
inline std::unique_ptr<Kernel> make_elementwise(const Signature& s, RangeLoop loop,
                                                int64_t cost = 1) {
  const int64_t elements = s.outputs[0].elements();
  uint32_t whole = 0;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    if (s.inputs[i].elements() != elements) whole |= 1u << i;
  }
  if (can_stage(s)) return std::make_unique<StagedLoop>(s, loop, elements, cost, whole);
  return all_f32(s) ? std::make_unique<UnitKernel>(elements, cost, loop) : nullptr;
}
// The same as CpuKernel::make.
template <RangeLoop kLoop, int64_t kCost = 1>
std::unique_ptr<Kernel> elementwise(const Signature& s) {
  return make_elementwise(s, kLoop, kCost);
}

// y[i] = map(i), or added. The inputs of map may alias y, element upon element.
template <class Map>
THIMBLE_INLINE void map_range(float* y, int64_t begin, int64_t end, bool add, const Map& map) {
  if (add) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] += map(i);
  } else {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = map(i);
  }
}

// y = map(x)
template <class Map>
THIMBLE_INLINE void map_unary(const KernelArgs& args, int64_t begin, int64_t end, const Map& map) {
  const float* x = args.inputs[0].as<const float>();
  map_range(args.outputs[0].as<float>(), begin, end, args.adds_into(0),
            [=](int64_t i) { return map(x[i]); });
}

// y = map(a, b), both of y's shape
template <class Map>
THIMBLE_INLINE void map_pairs(const KernelArgs& args, int64_t begin, int64_t end, const Map& map) {
  const float* a = args.inputs[0].as<const float>();
  const float* b = args.inputs[1].as<const float>();
  map_range(args.outputs[0].as<float>(), begin, end, args.adds_into(0),
            [=](int64_t i) { return map(a[i], b[i]); });
}

}  // namespace thimble
