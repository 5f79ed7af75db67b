// Element types, and the two 16-bit floats as C++ types that convert to and from float.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace thimble {

enum class DType : uint8_t { f32, f64, f16, bf16, i32, i64, u8 };

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

std::string_view name_of(DType dtype);     // "f32", "bf16", ...
DType parse_dtype(std::string_view name);  // throws UserError

// IEEE binary16; rounds to nearest even, overflows to infinity.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit Half(double value) : Half(static_cast<float>(value)) {}
  explicit operator float() const;
  explicit operator double() const { return static_cast<float>(*this); }
};

// The upper half of a float; rounds to nearest even, keeps NaN a NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((word >> 16) | 0x40u)
               : static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

// The type in which a kernel over T does its sums: double for double, float for the rest.
template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls body(TypeTag<T>{}) with the C++ type of a floating dtype.
template <class Body>
decltype(auto) with_float_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return body(TypeTag<float>{});
    case DType::f64:
      return body(TypeTag<double>{});
    case DType::f16:
      return body(TypeTag<Half>{});
    case DType::bf16:
      return body(TypeTag<BFloat16>{});
    default:
      internal_check(false, "with_float_type: not a floating dtype");
      return body(TypeTag<float>{});
  }
}

// Calls body(TypeTag<T>{}) with the C++ type of any dtype.
template <class Body>
decltype(auto) with_any_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::i32:
      return body(TypeTag<int32_t>{});
    case DType::i64:
      return body(TypeTag<int64_t>{});
    case DType::u8:
      return body(TypeTag<uint8_t>{});
    default:
      return with_float_type(dtype, std::forward<Body>(body));
  }
}

}  // namespace thimble
