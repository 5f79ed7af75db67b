#include "backend/cpu/multiply/packed_product.h"

#include <numeric>

namespace thimble {
namespace {

int64_t tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

// Multiplications that take as long as copying one number into a panel.
constexpr int64_t kCopy = 16;

// Multiplications at a time, in how much work is worth a thread.
constexpr double kLanesOrSo = 8;

// The cost of the largest of `down` x `across` rectangles, for each number along k.
int64_t cost_of(const ProductSize& s, int64_t wide, int64_t down, int64_t across) {
  const int64_t rows = tiles(tiles(s.m, kTileRows), down) * kTileRows;
  const int64_t columns = tiles(tiles(s.n, wide), across) * wide;
  return (rows + kCopy) * columns;
}

// Short runs far apart are nothing that a processor foresees. An address behind the matrix does no
// harm.
constexpr int64_t kAhead = 16;          // rows
constexpr int64_t kAheadOfTurning = 8;  // where they are long
template <class Number>
THIMBLE_INLINE void ask_for(const Number* from, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(Number);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
}

constexpr int64_t kPiece = 512;  // 16-bit numbers that are widened at once

using Four = float __attribute__((vector_size(16), aligned(4), may_alias));

}  // namespace

void turn_four(const float* from, int64_t pitch, int64_t count, int64_t wide, float* to) {
  int64_t p = 0;
  for (; p + 4 <= count; p += 4) {
    const auto column = [&](int64_t j) {
      return *reinterpret_cast<const Four*>(from + j * pitch + p);
    };
    const Four a = column(0), b = column(1), c = column(2), d = column(3);
    const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    float* const row = to + p * wide;
    *reinterpret_cast<Four*>(row) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *reinterpret_cast<Four*>(row + wide) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *reinterpret_cast<Four*>(row + 2 * wide) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *reinterpret_cast<Four*>(row + 3 * wide) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
  }
  for (; p < count; ++p) {
    for (int64_t j = 0; j < 4; ++j) to[p * wide + j] = from[j * pitch + p];
  }
}

PackedProduct::PackedProduct(const ProductSize& size, bool copies_left, const MicroKernel& kernel)
    : size_(size), kernel_(&kernel) {
  if (size_.y_pitch == 0) size_.y_pitch = size_.n;
  // As many rectangles of each product as share all products out evenly.
  const int64_t team = omp_get_max_threads();
  const int64_t cells = team / std::gcd(team, size_.batch);
  across_ = cells;
  for (int64_t down = 2; down <= cells; ++down) {
    if (cells % down != 0) continue;
    const auto cost = [&](int64_t d) { return cost_of(size_, kernel.wide, d, cells / d); };
    if (cost(down) < cost(down_)) down_ = down, across_ = cells / down;
  }
  const double work = static_cast<double>(size_.m) * static_cast<double>(size_.n) *
                      static_cast<double>(size_.k) / kLanesOrSo / static_cast<double>(cells);
  parts_ = Parts(size_.batch * cells, static_cast<int64_t>(std::clamp(work, 1.0, 1e9)));
  const int64_t rows = tiles(tiles(size_.m, kTileRows), down_) * kTileRows;
  const int64_t columns = tiles(tiles(size_.n, kernel.wide), across_);
  deep_ = std::min(size_.narrow ? kDeepOfSums : kDeep, size_.k);
  copies_left |= size_.narrow;
  // Blocks of rows as equal as may be: every one copies all panels.
  high_ = copies_left ? tiles(tiles(rows, tiles(rows, kHigh)), kTileRows) * kTileRows : rows;
  const int64_t panels = size_.narrow ? kPanelsOfSums : kPanels;
  panels_ = std::min(columns, panels / (deep_ * kernel.wide));
  room_ = panels_ * deep_ * kernel.wide + (copies_left ? high_ * deep_ : 0);
  if (size_.narrow) room_ += high_ * panels_ * kernel.wide;
  room_ = tiles(room_, 16) * 16;  // cache lines of its own for every thread
}

PackedProduct::Rectangle PackedProduct::rectangle(int64_t cell) const {
  const auto cut = [](int64_t extent, int64_t tile, int64_t part, int64_t parts) {
    return std::min(extent, tiles(extent, tile) * part / parts * tile);
  };
  const int64_t down = cell / across_, across = cell % across_;
  const int64_t wide = kernel_->wide;
  return {cut(size_.m, kTileRows, down, down_), cut(size_.m, kTileRows, down + 1, down_),
          cut(size_.n, wide, across, across_), cut(size_.n, wide, across + 1, across_)};
}

void PackedProduct::store(float* sums, int64_t count, DType dtype, uint16_t* y) const {
  if (size_.add) {
    for (int64_t i = 0; i < count; i += kPiece) {
      float before[kPiece];
      const int64_t some = std::min(kPiece, count - i);
      widen(dtype, y + i, some, before);
      for (int64_t j = 0; j < some; ++j) sums[i + j] += before[j];
    }
  }
  narrow(dtype, sums, count, y);
}

PackedProduct::Block ColumnsOfA::block(int64_t row, int64_t rows, int64_t p, int64_t count,
                                       float* room) const {
  for (int64_t i = 0; i < count; ++i) {
    const float* const from = data + (p + i) * pitch + row;
    ask_for(from + kAhead * pitch, rows);
    float* to = room + i * kTileRows;
    int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows, to += count * kTileRows) {
      std::memcpy(to, from + r, kTileRows * sizeof(float));
    }
    for (int64_t j = r; j < rows; ++j) to[j - r] = from[j];
  }
  return {{room, 1, kTileRows}, count * kTileRows};
}

void RowsOfB::panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
                     float* to) const {
  const float* from = data + p * pitch + column;
  for (int64_t i = 0; i < count; ++i, from += pitch) {
    ask_for(from + kAhead * pitch, columns);
    copy_row_to_panels(from, i, count, columns, wide, to);
  }
}

void ColumnsOfB::panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
                        float* to) const {
  const float* from = data + column * pitch + p;
  for (int64_t j = 0; j < columns; j += wide, from += wide * pitch, to += count * wide) {
    const int64_t some = std::min(wide, columns - j);
    int64_t e = 0;
    for (; e + 4 <= some; e += 4) turn_four(from + e * pitch, pitch, count, wide, to + e);
    for (; e < wide; ++e) {
      for (int64_t i = 0; i < count; ++i) to[i * wide + e] = e < some ? from[e * pitch + i] : 0;
    }
  }
}

PackedProduct::Block NarrowRowsOfA::block(int64_t row, int64_t rows, int64_t p, int64_t count,
                                          float* room) const {
  for (int64_t i = 0; i < rows; ++i) {
    const uint16_t* const from = data + (row + i) * pitch + p;
    ask_for(from + kAheadOfTurning * pitch, count);
    widen(dtype, from, count, room + i * count);
  }
  return {{room, count, 1}, kTileRows * count};
}

PackedProduct::Block NarrowColumnsOfA::block(int64_t row, int64_t rows, int64_t p, int64_t count,
                                             float* room) const {
  float numbers[PackedProduct::kHigh];
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t* const from = data + (p + i) * pitch + row;
    ask_for(from + kAhead * pitch, rows);
    widen(dtype, from, rows, numbers);
    float* to = room + i * kTileRows;
    int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows, to += count * kTileRows) {
      std::memcpy(to, numbers + r, kTileRows * sizeof(float));
    }
    for (int64_t j = r; j < rows; ++j) to[j - r] = numbers[j];
  }
  return {{room, 1, kTileRows}, count * kTileRows};
}

void NarrowRowsOfB::panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
                           float* to) const {
  float numbers[kPiece];  // whole panels: kPiece is a multiple of every width
  const uint16_t* from = data + p * pitch + column;
  for (int64_t i = 0; i < count; ++i, from += pitch) {
    ask_for(from + kAhead * pitch, columns);
    for (int64_t j = 0; j < columns; j += kPiece) {
      const int64_t some = std::min(kPiece, columns - j);
      widen(dtype, from + j, some, numbers);
      fill_row_of_panels(i, count, some, wide, to + j * count,
                         [&](int64_t at, int64_t few, float* row) {
                           std::memcpy(row, numbers + at, static_cast<size_t>(few) * sizeof(float));
                         });
    }
  }
}

void NarrowColumnsOfB::panels(int64_t p, int64_t count, int64_t column, int64_t columns,
                              int64_t wide, float* to) const {
  panels_of_columns(count, columns, wide, to, [&](int64_t j, float* numbers) {
    const uint16_t* const from = data + (column + j) * pitch + p;
    ask_for(from + kAheadOfTurning * pitch, count);
    widen(dtype, from, count, numbers);
  });
}

}  // namespace thimble
