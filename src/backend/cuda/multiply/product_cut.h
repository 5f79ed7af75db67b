// Split-K: into how many parts the sums of a product are cut. A block of a device makes a tile of
// results from sums of the whole depth. Gradients of weights are few results with long sums (over
// all tokens): a handful of blocks would work for long and the rest of the device would idle.
//
//   y [M,N] = a' b   | rows 0 .. depth | depth .. 2 depth | ... | rest |   each with sums of its own
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/number/dtype.h"

namespace thimble {

struct ProductCut {
  int64_t parts = 1;
  int64_t depth = 0;  // of each of them
  int64_t rest = 0;   // of what is left over, less than a part

  // Partial sums that have to be added up.
  int64_t pieces() const { return parts + (rest > 0 ? 1 : 0); }
};

// Of y [m,n] with sums over k, on a device of so many multiprocessors: depends on nothing else.
// Sums of parts are f32, and take no more than half the bytes of the factors.
constexpr ProductCut product_cut(int64_t m, int64_t n, int64_t k, DType factors,
                                 int64_t multiprocessors) {
  constexpr int64_t kTile = 128;        // rows and columns that a block makes, about
  constexpr int64_t kBusy = 4;          // of the device, a block on every fourth is enough
  constexpr int64_t kLeastDepth = 256;  // of a part, and a quarter of what is worth it
  constexpr int64_t kMostParts = 32;
  constexpr int64_t kEven = 8;  // keeps the parts of factors aligned

  const ProductCut whole = {1, k, 0};
  const auto tiles_of = [](int64_t extent) { return (extent + kTile - 1) / kTile; };
  const int64_t tiles = tiles_of(m) * tiles_of(n);
  if (tiles == 0 || tiles * kBusy > multiprocessors || k < 4 * kLeastDepth) return whole;
  const int64_t sums = m * n * int64_t{sizeof(float)};
  const int64_t room = (m + n) * k * size_of(factors) / 2 / sums;
  const int64_t most = std::min({multiprocessors / tiles, k / kLeastDepth, room, kMostParts});
  // Nothing is left over where a number of parts near that one lets it be.
  for (int64_t parts = most; 4 * parts >= 3 * most && parts > 1; --parts) {
    if (k % (parts * kEven) == 0) return {parts, k / parts, 0};
  }
  const int64_t parts = std::min(most, room - 1);
  if (parts < 2) return whole;
  const int64_t depth = k / (parts * kEven) * kEven;
  return {parts, depth, k - parts * depth};
}

}  // namespace thimble
