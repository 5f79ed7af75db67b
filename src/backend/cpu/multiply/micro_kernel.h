// The innermost loop of our own products: a tile of y stays in registers while k runs. One for
// every width of vectors on which oneDNN lacks a product of some dtype, or draws memory for it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace thimble {

inline constexpr int64_t kTileRows = 6;

// Some rows of the left factor: number (i, p) lies at data[i * line + p * step].
struct TileOfA {
  const float* data;
  int64_t line, step;
};

// A tile of y, `rows` (kTileRows at most) by `columns` (a kernel's `wide` at most).
struct TileOfY {
  float* data;
  int64_t pitch;
  int64_t rows, columns;
};

struct MicroKernel {
  std::string_view name;
  int64_t wide;  // columns of a tile
  // y = a b, or added; b is a panel [k, wide].
  void (*multiply)(int64_t k, const TileOfA& a, const float* b, const TileOfY& y, bool add);
};

// The micro kernels that this processor can run, the widest last.
std::span<const MicroKernel> micro_kernels();

}  // namespace thimble
