// A single row times a matrix that has a row for each result: y[n] = x . w[n], as a token makes it.
// Every row of the matrix is read once, where it lies, and nothing is packed.
#pragma once

#include <algorithm>

#include "backend/cpu/attend/attention_tiles.h"
#include "backend/cpu/cpu_kernel.h"
#include "backend/cpu/parallel.h"

namespace thimble {

class RowProduct {
 public:
  RowProduct(int64_t results, int64_t depth, bool add)
      : depth_(depth), add_(add), parts_(results, depth * 2) {}

  Bytes workspace() const { return Bytes(depth_ * static_cast<int64_t>(sizeof(float))); }

  // `read(n, first, count, room)`: where numbers [first, first + count) of row n of the matrix are,
  // in `room` if need be, which holds kPiece of them.
  template <class Read>
  void run(const TensorRef& x, const TensorRef& y, std::byte* workspace, const Read& read) const {
    const float* const left = as_f32(x, 0, depth_, reinterpret_cast<float*>(workspace));
    parts_.run([&](int, int64_t begin, int64_t end) {
      alignas(64) float room[kPiece];
      for (int64_t n = begin; n < end; ++n) {
        float sum = 0;
        if (add_) sum = *as_f32(y, n, 1, &sum);
        for (int64_t first = 0; first < depth_; first += kPiece) {
          const int64_t count = std::min(kPiece, depth_ - first);
          float part = 0;
          row_products(1, count, {read(n, first, count, room), 0, 1}, {left + first, 0, 1}, &part);
          sum += part;
        }
        *room_for(y, n, &sum) = sum;
        commit(&sum, y, n, 1);
      }
    });
  }

  static constexpr int64_t kPiece = 512;

 private:
  const int64_t depth_;
  const bool add_;
  const Parts parts_;
};

}  // namespace thimble
