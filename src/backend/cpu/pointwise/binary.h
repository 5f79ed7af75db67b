// What add, sub and mul share: operands of the result's shape, or repeated along its leading axes
// (a bias, a scalar).
#pragma once

#include "backend/cpu/pointwise/elementwise.h"

namespace thimble {

// Whether `operand` is the trailing axes of `result`, so that it repeats every operand.elements().
inline bool repeats_whole(const Shape& operand, const Shape& result) {
  int rank = operand.rank();
  while (rank > 0 && operand.back(rank) == 1) --rank;
  for (int n = 1; n <= rank; ++n) {
    if (operand.back(n) != result.back(n)) return false;
  }
  return true;
}

template <class Combine>
THIMBLE_INLINE void combine_range(const KernelArgs& args, int64_t begin, int64_t end,
                                  const Combine& combine) {
  const int64_t size_a = args.inputs[0].elements(), size_b = args.inputs[1].elements();
  const float* a = args.inputs[0].as<const float>();
  const float* b = args.inputs[1].as<const float>();
  float* y = args.outputs[0].as<float>();
  const int64_t period = std::min(size_a, size_b);
  const bool add = args.adds_into(0);
  // From one end of the shorter operand to the next.
  for (int64_t at = begin; at < end;) {
    const int64_t stop = period == 1 ? end : std::min(end, (at / period + 1) * period);
    const float* from_a = a + at % size_a;
    const float* from_b = b + at % size_b;
    if (size_a == 1) {
      const float one = *a;
      map_range(y + at, 0, stop - at, add, [=](int64_t i) { return combine(one, from_b[i]); });
    } else if (size_b == 1) {
      const float one = *b;
      map_range(y + at, 0, stop - at, add, [=](int64_t i) { return combine(from_a[i], one); });
    } else {
      map_range(y + at, 0, stop - at, add,
                [=](int64_t i) { return combine(from_a[i], from_b[i]); });
    }
    at = stop;
  }
}

// As CpuKernel::make.
template <RangeLoop kLoop>
std::unique_ptr<Kernel> binary(const Signature& s) {
  const Shape& y = s.outputs[0].shape;
  if (!repeats_whole(s.inputs[0].shape, y) || !repeats_whole(s.inputs[1].shape, y)) return nullptr;
  // One of them must be as large as the result: the loop follows the other's ends.
  const int64_t largest = std::max(s.inputs[0].elements(), s.inputs[1].elements());
  return largest == y.elements() ? make_elementwise(s, kLoop) : nullptr;
}

}  // namespace thimble
