// Powers with small whole exponents as products: within 2 units in the last place of libm's.
#pragma once

#include <type_traits>

#include "backend/cpu/parallel.h"
#include "graph/attrs.h"

namespace thimble {

template <int kExponent>
THIMBLE_INLINE float whole_power(float x) {
  if constexpr (kExponent == 0) {
    return 1;
  } else if constexpr (kExponent % 2 == 0) {
    const float root = whole_power<kExponent / 2>(x);
    return root * root;
  } else {
    return whole_power<kExponent - 1>(x) * x;
  }
}

// Whether attributes of map ask for a power of which exponent `a` less `lower` is one.
inline bool is_whole_power(const Attrs& attrs, int lower) {
  const double exponent = attrs.real("a", 0) - lower;
  const bool small =
      exponent == 0 || exponent == 1 || exponent == 2 || exponent == 3 || exponent == 4;
  return attrs.text("of", "") == "pow" && small;
}

// Calls body(n) with the exponent, which is 4 at most, as a compile-time constant.
template <class Body>
THIMBLE_INLINE void with_whole_power(double exponent, const Body& body) {
  if (exponent == 0) return body(std::integral_constant<int, 0>{});
  if (exponent == 1) return body(std::integral_constant<int, 1>{});
  if (exponent == 2) return body(std::integral_constant<int, 2>{});
  if (exponent == 3) return body(std::integral_constant<int, 3>{});
  body(std::integral_constant<int, 4>{});
}

}  // namespace thimble
