// Parts of rows, as slices and their like move them. Bits that only move do so in the widest units
// that divide every row and offset; sums are of numbers.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "ops/shape/axis_part.h"

namespace thimble {

// a / b; by 32 bits where they fit.
__device__ inline int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

template <class Unit>
__device__ void put(Unit* to, const Unit& value, bool) {
  *to = value;
}
template <class T>
__device__ void put(Pack<T>* to, const Pack<T>& value, bool add) {
  if (!add) {
    *to = value;
    return;
  }
  Pack<T> sum = *to;
#pragma unroll
  for (int e = 0; e < Pack<T>::kCount; ++e)
    sum.at[e] = narrow<T>(widen(sum.at[e]) + widen(value.at[e]));
  *to = sum;
}
// One number of its own.
template <class T>
struct Single {
  T at;
};
template <class T>
__device__ void put(Single<T>* to, const Single<T>& value, bool add) {
  if constexpr (std::is_integral_v<T>) {
    to->at = add ? static_cast<T>(to->at + value.at) : value.at;
  } else {
    to->at = add ? narrow<T>(widen(to->at) + widen(value.at)) : value.at;
  }
}

// The largest of 16, 8, 4, 2, 1 that divides them all.
template <class... Counts>
int64_t widest_unit(Counts... bytes) {
  int64_t unit = 16;
  while (((bytes % unit != 0) || ...)) unit /= 2;
  return unit;
}

// A part of one axis in bytes. `unit` divides them all.
struct BytePart : AxisPart {
  int64_t unit;

  BytePart(const TensorType& whole_type, const TensorType& part_type, const Attrs& attrs)
      : AxisPart(axis_part(whole_type.shape, part_type.shape, attrs)) {
    for (int64_t* count : {&whole, &part, &begin}) *count *= size_of(whole_type.dtype);
    unit = widest_unit(whole, part, begin);
  }
};

// Calls body(TypeTag<Unit>{}, bytes of a unit), where every place and length in bytes is a multiple
// of `step`. REQUIRES, to add: can_move().
template <class Body>
void with_unit(DType dtype, bool add, int64_t step, Body&& body) {
  const auto call = [&](auto tag) {
    body(tag, static_cast<int64_t>(sizeof(typename decltype(tag)::type)));
  };
  if (!add) {
    if (step == 16) return call(TypeTag<uint4>{});
    if (step == 8) return call(TypeTag<uint2>{});
    if (step == 4) return call(TypeTag<uint32_t>{});
    if (step == 2) return call(TypeTag<uint16_t>{});
    return call(TypeTag<uint8_t>{});
  }
  if (dtype == DType::u8) return call(TypeTag<Single<uint8_t>>{});
  if (dtype == DType::i32) return call(TypeTag<Single<int32_t>>{});
  if (dtype == DType::i64) return call(TypeTag<Single<int64_t>>{});
  with_device_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (step == 16) {
      call(TypeTag<Pack<T>>{});
    } else {
      call(TypeTag<Single<T>>{});
    }
  });
}

inline bool can_move(const Signature& s) {
  return s.accumulate == 0 || s.outputs[0].dtype != DType::f64;
}

}  // namespace thimble
