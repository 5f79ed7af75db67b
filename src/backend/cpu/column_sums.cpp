#include "backend/cpu/column_sums.h"

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

// In float over blocks of rows, in double over the blocks.
THIMBLE_FOR_EACH_ISA void add_rows(const float* x, int64_t rows, int64_t columns, double* into) {
  constexpr int64_t kBlock = 64;
  for (int64_t c = 0; c < columns; ++c) into[c] = 0;
  for (int64_t begin = 0; begin < rows; begin += kBlock) {
    const int64_t count = std::min(kBlock, rows - begin);
    for_each_tile<64>(
        columns, [&](auto width, int64_t c) __attribute__((always_inline)) {
          add_block<width>(x + begin * columns + c, count, columns, into + c);
        });
  }
}

}  // namespace

void ColumnSums::run(const float* x, std::byte* workspace, double factor, bool add,
                     float* to) const {
  auto* partial = reinterpret_cast<double*>(workspace);
  parts_.run([&](int part, int64_t begin, int64_t end) {
    add_rows(x + begin * columns_, end - begin, columns_, partial + part * columns_);
  });
  for (int64_t c = 0; c < columns_; ++c) {
    double sum = 0;
    for (int part = 0; part < parts_.count(); ++part) sum += partial[part * columns_ + c];
    const auto value = static_cast<float>(factor * sum);
    to[c] = add ? to[c] + value : value;
  }
}

}  // namespace thimble
