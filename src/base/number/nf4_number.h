// Arithmetic of NF4 (base/nf4.h) for every device. Real is a float whose results are rounded one by
// one.
#pragma once

namespace thimble {

// A block's scale, of its code's number in nf4_scale_map().
template <class Real>
constexpr Real nf4_scale(float mapped, float nested, float offset) {
  return Real(mapped) * Real(nested) + Real(offset);
}
template <class Real>
constexpr Real nf4_number(float level, Real scale) {
  return Real(level) * scale;
}

}  // namespace thimble
