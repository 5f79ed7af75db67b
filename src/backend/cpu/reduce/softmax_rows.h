// Pieces of softmax over one row.
#pragma once

#include "backend/cpu/pointwise/vector_math.h"

namespace thimble {

THIMBLE_INLINE float row_maximum(const float* x, int64_t columns) {
  float lane[16];
  for (int l = 0; l < 16; ++l) lane[l] = x[0];
  int64_t c = 0;
  for (; c + 16 <= columns; c += 16) {
    for (int l = 0; l < 16; ++l) lane[l] = x[c + l] > lane[l] ? x[c + l] : lane[l];
  }
  float largest = lane[0];
  for (int l = 1; l < 16; ++l) largest = lane[l] > largest ? lane[l] : largest;
  for (; c < columns; ++c) largest = x[c] > largest ? x[c] : largest;
  return largest;
}

// The sum of map(c) over a row, in 16 lanes that are added up in double every 1024 columns.
template <class Map>
THIMBLE_INLINE double row_sum(int64_t columns, const Map& map) {
  double sum = 0;
  int64_t c = 0;
  while (c + 16 <= columns) {
    float lane[16] = {};
    const int64_t stop = std::min(columns, c + 1024);
    for (; c + 16 <= stop; c += 16) {
      for (int l = 0; l < 16; ++l) lane[l] += map(c + l);
    }
    for (int l = 0; l < 16; ++l) sum += static_cast<double>(lane[l]);
  }
  for (; c < columns; ++c) sum += static_cast<double>(map(c));
  return sum;
}

}  // namespace thimble
