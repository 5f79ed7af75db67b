// 16-bit floats on a CPU that computes in f32: slices of tensors are widened, worked on, and
// narrowed again. Conversions are vectorised and give the same bits on every instruction set.
#pragma once

#include <cstdint>

#include "graph/op.h"

namespace thimble {

constexpr bool is_sixteen_bit(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
// Whether our kernels can stage the type.
constexpr bool is_stageable(DType dtype) { return dtype == DType::f32 || is_sixteen_bit(dtype); }

// `count` elements of the tensor from element `first` on, as f32, and back, rounding to nearest
// even. REQUIRES: the tensor has a 16-bit dtype.
void widen(const TensorRef& from, int64_t first, int64_t count, float* to);
void narrow(const float* from, const TensorRef& to, int64_t first, int64_t count);
// The same for numbers that are no tensor's. REQUIRES: a 16-bit dtype.
void widen(DType dtype, const uint16_t* from, int64_t count, float* to);
void narrow(DType dtype, const float* from, int64_t count, uint16_t* to);

// An f32 tensor is used where it is, a 16-bit one in `room`: the elements as f32, and the place for
// results, which commit() then brings where they belong.
inline const float* as_f32(const TensorRef& tensor, int64_t first, int64_t count, float* room) {
  if (tensor.type.dtype == DType::f32) return tensor.as<const float>() + first;
  widen(tensor, first, count, room);
  return room;
}
inline float* room_for(const TensorRef& tensor, int64_t first, float* room) {
  return tensor.type.dtype == DType::f32 ? tensor.as<float>() + first : room;
}
inline void commit(const float* room, const TensorRef& tensor, int64_t first, int64_t count) {
  if (tensor.type.dtype != DType::f32) narrow(room, tensor, first, count);
}

}  // namespace thimble
