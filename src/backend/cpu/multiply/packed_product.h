// Our own matrix products: y [m,n] = a [m,k] b [k,n], or added to y. They stand in where oneDNN
// would allocate memory at every call (processors without AVX-512) or has no kernel for 16-bit
// matrices. Sums are f32, and 16-bit factors are widened on their way into blocks and panels.
//
//                 b  │▒│▒│▒│▒│  panels, kDeep x a tile's width each, copied into the workspace
//                    │▒│▒│▒│▒│
//     a  ▒▒▒▒▒▒  y   │▪│ │ │ │  a tile of y stays in registers while k runs
//        ▒▒▒▒▒▒      │ │ │ │ │
//        a block, read where it lies or copied
//
// The threads share out rectangles of y. A number of y is summed in one order, whatever the team
// and the addresses. Factors copy themselves into blocks and panels, so the patches of a
// convolution are multiplied without being stored. A y in 16 bits is rounded once: blocks of it are
// summed up in the workspace over all of k.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "backend/cpu/multiply/micro_kernel.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/sixteen_bit.h"

namespace thimble {

struct ProductSize {
  int64_t batch = 1;  // of independent products
  int64_t m, n, k;
  int64_t y_pitch = 0;  // from one row of y to the next; 0: n
  bool add = false;
  bool narrow = false;  // y has 16 bits
};

// y in 16 bits.
struct NarrowRows {
  uint16_t* data;
  DType dtype;
};

class PackedProduct {
 public:
  static constexpr int64_t kDeep = 256;  // numbers along k at a time
  static constexpr int64_t kHigh = 240;  // rows of a that are copied at a time: whole tiles
  static constexpr int64_t kPanels =
      16 * 1024;  // numbers in panels, which a second-level cache holds
  // Where blocks of y are summed up in the workspace, and every group of panels copies the left
  // factor again.
  static constexpr int64_t kDeepOfSums = 128, kPanelsOfSums = 2 * kPanels;

  // A block of the left factor: tile after tile of rows.
  struct Block {
    TileOfA first;
    int64_t next;  // from a tile to the next
  };
  struct Rectangle {
    int64_t row, row_end, column, column_end;
  };

  PackedProduct() = default;
  // For the team of the calling thread. `copies_left`: the left factor needs room for its blocks.
  PackedProduct(const ProductSize& size, bool copies_left, const MicroKernel& kernel);

  explicit operator bool() const { return kernel_ != nullptr; }
  size_t scratch_bytes() const {
    return static_cast<size_t>(parts_.count() * room_) * sizeof(float);
  }
  std::string name() const { return "packed:" + std::string(kernel_->name); }

  // factors(i) gives {left, right, y} of product i, y a float* or NarrowRows:
  //   Block left.block(row, rows, p, count, room): rows [row, row + rows) and, along k, [p, p + count)
  //   right.panels(p, count, column, columns, wide, to): writes panels [count, wide], one behind the
  //     other, zeros behind the columns
  template <class Factors>
  void run(const Factors& factors, std::byte* scratch) const {
    const int64_t cells = down_ * across_;
    parts_.run([&](int part, int64_t begin, int64_t end) {
      float* const room = reinterpret_cast<float*>(scratch) + part * room_;
      for (int64_t i = begin; i < end; ++i) {
        const auto [left, right, y] = factors(i / cells);
        multiply(left, right, y, rectangle(i % cells), room);
      }
    });
  }

 private:
  Rectangle rectangle(int64_t cell) const;

  // A block of rows times the panels in `room`.
  struct Tiles {
    int64_t high, columns, deep;
  };
  void multiply_block(const Block& block, const Tiles& tiles, const float* panels, float* y,
                      int64_t pitch, bool add) const {
    const int64_t wide = kernel_->wide;
    TileOfA a = block.first;
    for (int64_t i = 0; i < tiles.high; i += kTileRows, a.data += block.next) {
      for (int64_t j = 0; j < tiles.columns; j += wide) {
        kernel_->multiply(tiles.deep, a, panels + j * tiles.deep,
                          {y + i * pitch + j, pitch, std::min(kTileRows, tiles.high - i),
                           std::min(wide, tiles.columns - j)},
                          add);
      }
    }
  }

  template <class Left, class Right>
  void multiply(const Left& left, const Right& right, float* y, const Rectangle& r,
                float* room) const {
    const int64_t group = panels_ * kernel_->wide;
    float* const copy = room + group * deep_;
    for (int64_t p = 0; p < size_.k; p += deep_) {
      const int64_t deep = std::min(deep_, size_.k - p);
      const bool add = size_.add || p > 0;
      for (int64_t row = r.row; row < r.row_end; row += high_) {
        const int64_t high = std::min(high_, r.row_end - row);
        const Block block = left.block(row, high, p, deep, copy);
        for (int64_t column = r.column; column < r.column_end; column += group) {
          const int64_t columns = std::min(group, r.column_end - column);
          right.panels(p, deep, column, columns, kernel_->wide, room);
          multiply_block(block, {high, columns, deep}, room, y + row * size_.y_pitch + column,
                         size_.y_pitch, add);
        }
      }
    }
  }

  template <class Left, class Right>
  void multiply(const Left& left, const Right& right, const NarrowRows& y, const Rectangle& r,
                float* room) const {
    const int64_t group = panels_ * kernel_->wide;
    float* const copy = room + group * deep_;
    float* const sums = copy + high_ * deep_;
    for (int64_t row = r.row; row < r.row_end; row += high_) {
      const int64_t high = std::min(high_, r.row_end - row);
      for (int64_t column = r.column; column < r.column_end; column += group) {
        const int64_t columns = std::min(group, r.column_end - column);
        for (int64_t p = 0; p < size_.k; p += deep_) {
          const int64_t deep = std::min(deep_, size_.k - p);
          const Block block = left.block(row, high, p, deep, copy);
          right.panels(p, deep, column, columns, kernel_->wide, room);
          multiply_block(block, {high, columns, deep}, room, sums, group, p > 0);
        }
        for (int64_t i = 0; i < high; ++i) {
          store(sums + i * group, columns, y.dtype, y.data + (row + i) * size_.y_pitch + column);
        }
      }
    }
  }

  // Rounds a row of sums, added to what is there where that is asked for.
  void store(float* sums, int64_t count, DType dtype, uint16_t* y) const;

  ProductSize size_ = {};
  const MicroKernel* kernel_ = nullptr;
  int64_t down_ = 1, across_ = 1;  // rectangles of a product
  int64_t deep_ = 0, high_ = 0;    // of a block, at most
  int64_t panels_ = 0;             // at a time
  int64_t room_ = 0;               // floats, of a thread
  Parts parts_{0, 0};
};

// Matrices as they are stored.

// Left, row by row.
struct RowsOfA {
  const float* data;
  int64_t pitch;
  PackedProduct::Block block(int64_t row, int64_t, int64_t p, int64_t, float*) const {
    return {{data + row * pitch + p, pitch, 1}, kTileRows * pitch};
  }
};

// Left, column by column.
struct ColumnsOfA {
  const float* data;
  int64_t pitch;
  PackedProduct::Block block(int64_t row, int64_t rows, int64_t p, int64_t count,
                             float* room) const;
};

// Right, row by row.
struct RowsOfB {
  const float* data;
  int64_t pitch;
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const;
};

// Right, column by column.
struct ColumnsOfB {
  const float* data;
  int64_t pitch;
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const;
};

// The same of 16-bit matrices.
struct NarrowMatrix {
  const uint16_t* data;
  int64_t pitch;
  DType dtype;
};
struct NarrowRowsOfA : NarrowMatrix {
  PackedProduct::Block block(int64_t row, int64_t rows, int64_t p, int64_t count,
                             float* room) const;
};
struct NarrowColumnsOfA : NarrowMatrix {
  PackedProduct::Block block(int64_t row, int64_t rows, int64_t p, int64_t count,
                             float* room) const;
};
struct NarrowRowsOfB : NarrowMatrix {
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const;
};
struct NarrowColumnsOfB : NarrowMatrix {
  void panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
              float* to) const;
};

// Four columns of `count` numbers, `pitch` apart, become columns of a panel.
void turn_four(const float* from, int64_t pitch, int64_t count, int64_t wide, float* to);

// Panels of a right factor whose columns are made one by one: make(column, to) writes `count`
// numbers. REQUIRES: count is kDeep at most.
template <class Make>
void panels_of_columns(int64_t count, int64_t columns, int64_t wide, float* to, const Make& make) {
  float numbers[4 * PackedProduct::kDeep];
  for (int64_t j = 0; j < columns; j += wide, to += count * wide) {
    const int64_t some = std::min(wide, columns - j);
    int64_t e = 0;
    for (; e < some; e += 4) {
      const int64_t four = std::min<int64_t>(4, some - e);
      for (int64_t i = 0; i < four; ++i) make(j + e + i, numbers + i * count);
      // The others are zeros.
      std::fill(numbers + four * count, numbers + 4 * count, 0.0f);
      turn_four(numbers, count, count, wide, to + e);
    }
    for (; e < wide; e += 4) {
      for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * wide + e, 4, 0.0f);
    }
  }
}

// Writes row i of panels [count, wide]: copy(column, columns, to) for each of them.
template <class Copy>
THIMBLE_INLINE void fill_row_of_panels(int64_t i, int64_t count, int64_t columns, int64_t wide,
                                       float* panels, const Copy& copy) {
  float* to = panels + i * wide;
  for (int64_t j = 0; j < columns; j += wide, to += count * wide) {
    const int64_t some = std::min(wide, columns - j);
    copy(j, some, to);
    for (int64_t rest = some; rest < wide; ++rest) to[rest] = 0;
  }
}

// The same from a row that is stored as it is.
THIMBLE_INLINE void copy_row_to_panels(const float* from, int64_t i, int64_t count, int64_t columns,
                                       int64_t wide, float* panels) {
  constexpr int64_t kEight = 8;  // divides the width of every panel
  fill_row_of_panels(i, count, columns, wide, panels, [&](int64_t j, int64_t some, float* to) {
    if (some < wide) {
      for (int64_t e = 0; e < some; ++e) to[e] = from[j + e];
      return;
    }
    for (int64_t e = 0; e < wide; e += kEight) {
      std::memcpy(to + e, from + j + e, kEight * sizeof(float));
    }
  });
}

}  // namespace thimble
