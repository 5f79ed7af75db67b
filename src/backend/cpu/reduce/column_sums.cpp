#include "backend/cpu/reduce/column_sums.h"

namespace thimble {
namespace {

template <int kColumns>
THIMBLE_INLINE void add_block(const float* x, int64_t rows, int64_t columns, double* into) {
  float sum[kColumns] = {};
  for (int64_t r = 0; r < rows; ++r) {
    for (int c = 0; c < kColumns; ++c) sum[c] += x[r * columns + c];
  }
  for (int c = 0; c < kColumns; ++c) into[c] += static_cast<double>(sum[c]);
}

THIMBLE_FOR_EACH_ISA void add_rows(const float* x, int64_t rows, int64_t columns, double* into) {
  for_each_tile<64>(
      columns, [&](auto width, int64_t c) __attribute__((always_inline)) {
        add_block<width>(x + c, rows, columns, into + c);
      });
}

}  // namespace

// In float over blocks of rows, in double over the blocks.
void ColumnSums::run(const TensorRef& x, std::byte* workspace, double factor, bool add,
                     const TensorRef& to) const {
  auto* partial = reinterpret_cast<double*>(workspace);
  auto* rooms = reinterpret_cast<float*>(partial + parts_.count() * columns_);
  parts_.run([&](int part, int64_t begin, int64_t end) {
    double* sums = partial + part * columns_;
    std::fill_n(sums, columns_, 0.0);
    for (int64_t row = begin; row < end; row += kBlock) {
      const int64_t rows = std::min(kBlock, end - row);
      add_rows(as_f32(x, row * columns_, rows * columns_, rooms + part * kBlock * columns_), rows,
               columns_, sums);
    }
  });
  with_float_type(to.type.dtype, [&]<class T>(TypeTag<T>) {
    T* sums = to.as<T>();
    for (int64_t c = 0; c < columns_; ++c) {
      double sum = 0;
      for (int part = 0; part < parts_.count(); ++part) sum += partial[part * columns_ + c];
      const auto value = static_cast<float>(factor * sum);
      sums[c] = static_cast<T>(add ? static_cast<float>(sums[c]) + value : value);
    }
  });
}

}  // namespace thimble
