// The common part of encode_groups and decode_groups (base/number/group_quantization.h).
#pragma once

#include <array>

#include "base/number/group_quantization.h"
#include "ops/checks.h"
#include "ops/reference.h"

namespace thimble {

inline int bits_of(std::string_view op, const Attrs& attrs) {
  const int64_t bits = attrs.integer("bits");
  user_check(bits >= kLeastCodeBits && bits <= kMostCodeBits, "[{}] knows {} to {} bits, not {}",
             op, kLeastCodeBits, kMostCodeBits, bits);
  return static_cast<int>(bits);
}

// Calls body(integral constants) with what attrs bits and zeros say.
template <class Body>
void with_code(const Attrs& attrs, const Body& body) {
  with_group_code(attrs.integer("bits"), attrs.integer("zeros", 0) != 0, body);
}

inline std::array<TensorType, 2> group_code_types(const Shape& shape, int bits) {
  return {TensorType{{packed_bytes(shape.elements(), bits)}, DType::u8},
          TensorType{{code_groups(shape.elements()), 2}, DType::f32}};
}

// The tensor that attrs shape and dtype (f32) of a decoder ask for.
inline TensorType decoded_type(std::string_view op, const Attrs& attrs) {
  const TensorType type = {Shape(std::span<const int64_t>(attrs.integers("shape"))),
                           parse_dtype(attrs.text("dtype", "f32"))};
  check_floating(op, "result", type);
  return type;
}

// Calls body(group, first, count) for the groups of `elements` numbers; the last may be shorter.
template <class Body>
void for_each_group(int64_t elements, Body&& body) {
  for (int64_t group = 0; group < code_groups(elements); ++group) {
    const int64_t first = group * kCodeGroup;
    body(group, first, std::min(kCodeGroup, elements - first));
  }
}

}  // namespace thimble
