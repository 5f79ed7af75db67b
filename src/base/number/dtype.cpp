#include "base/number/dtype.h"

#include <array>
#include <utility>

namespace thimble {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 7> kNames = {{{"f32", DType::f32},
                                                                       {"f64", DType::f64},
                                                                       {"f16", DType::f16},
                                                                       {"bf16", DType::bf16},
                                                                       {"i32", DType::i32},
                                                                       {"i64", DType::i64},
                                                                       {"u8", DType::u8}}};

}  // namespace

std::string_view name_of(DType dtype) {
  for (const auto& [name, value] : kNames) {
    if (value == dtype) return name;
  }
  return "?";
}

DType parse_dtype(std::string_view name) {
  for (const auto& [known, value] : kNames) {
    if (known == name) return value;
  }
  user_error("'{}' is not an element type; known: f32, f64, f16, bf16, i32, i64, u8", name);
}

Half::Half(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (word >> 16) & 0x8000u;
  const uint32_t magnitude = word & 0x7fffffffu;
  uint32_t result = 0;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u;  // NaN
  } else if (magnitude >= 0x477ff000u) {
    result = 0x7c00u;  // rounds to infinity, or is
  } else if (magnitude >= 0x38800000u) {
    const uint32_t rebased = magnitude - 0x38000000u;  // exponent bias 127 -> 15
    result = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  } else {
    // Subnormal: adding 0.5 lines the bits up so that the FPU does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
  }
  bits = static_cast<uint16_t>(sign | result);
}

Half::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(subnormal) | sign);
  }
  const uint32_t rebased = exponent == 31 ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | (rebased << 23) | (mantissa << 13));
}

}  // namespace thimble
