#include "backend/cpu/shape/copy_rows.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void add_row(const float* __restrict from, int64_t count,
                                  float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

void add_narrow_row(DType dtype, const uint16_t* from, int64_t count, uint16_t* to) {
  constexpr int64_t kPiece = 1024;
  float x[kPiece], y[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t some = std::min(kPiece, count - i);
    widen(dtype, from + i, some, x);
    widen(dtype, to + i, some, y);
    add_row(x, some, y);
    narrow(dtype, y, some, to + i);
  }
}

}  // namespace

void copy_rows(const CopyRows& rows, DType dtype, const void* from, void* to, bool add) {
  const int64_t element_size = size_of(dtype);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  // One long row is cut up instead.
  CopyRows r = rows;
  constexpr int64_t kPiece = 16 * 1024;
  const bool one = r.outer == 1 || (r.from_pitch == r.count && r.to_pitch == r.count);
  const int64_t all = r.outer * r.count;
  if (one) r = {(all + kPiece - 1) / kPiece, kPiece, kPiece, kPiece};
  Parts(r.outer, r.count).run([&](int, int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t count = one ? std::min(kPiece, all - o * kPiece) : r.count;
      const std::byte* x = source + o * r.from_pitch * element_size;
      std::byte* y = target + o * r.to_pitch * element_size;
      if (add && dtype != DType::f32) {
        add_narrow_row(dtype, reinterpret_cast<const uint16_t*>(x), count,
                       reinterpret_cast<uint16_t*>(y));
      } else if (add) {
        add_row(reinterpret_cast<const float*>(x), count, reinterpret_cast<float*>(y));
      } else {
        std::memcpy(y, x, static_cast<size_t>(count * element_size));
      }
    }
  });
}

}  // namespace thimble
