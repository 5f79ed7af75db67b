// Frozen matrices in few bits beside a library that multiplies numbers: a slab of the matrix is
// decoded to scratch, and multiplied before the next one is.
//
//   W [rows,columns]   y = x W'  slabs are rows         y = x W  slabs are columns
//
// Decoding is a function of a place, for kernels of a device and for tests of them on the host.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/number/nf4_number.h"
#include "graph/coded_weight.h"

namespace thimble {

// The bytes that a slab may take.
inline constexpr int64_t kMostSlabBytes = int64_t{16} << 20;

// How many of the `wide` columns of a product are in a slab, where each has `deep` numbers of so many
// bytes: about equal slabs, multiples of 64 or of 8 where that can be. Fewer than all of them where
// there are two.
constexpr int64_t slab_columns(int64_t wide, int64_t deep, int64_t number_bytes) {
  const int64_t room =
      std::max<int64_t>(1, kMostSlabBytes / std::max<int64_t>(1, deep * number_bytes));
  const int64_t most = std::clamp<int64_t>((wide + 1) / 2, 1, room);
  const int64_t slabs = (wide + most - 1) / most;
  const int64_t equal = (wide + slabs - 1) / slabs;
  for (const int64_t unit : {64, 8}) {
    const int64_t even = (equal + unit - 1) / unit * unit;
    if (even < wide && even <= room) return even;
  }
  return equal;
}

// A part of a matrix: `rows` x `columns` numbers from one on.
struct SlabPlace {
  int64_t row = 0, column = 0, rows = 0, columns = 0;
};

// The levels and the scales of NF4, where a kernel has them at hand.
struct Nf4Tables {
  const float* levels;  // [16]
  const float* scales;  // [256]
};

// kWide neighbours of a row from number `begin` of the matrix on. REQUIRES: kWide > 1: `begin` is a
// multiple of it.
template <class Real>
struct Nf4Slab {
  const uint8_t* codes;
  const uint8_t* absmax;
  const float* nested;
  const float* offset;

  template <int kWide>
  constexpr void decode(int64_t, int64_t begin, const Nf4Tables& tables, float (&to)[kWide]) const {
    const int64_t block = begin / kNf4Block;
    const Real scale =
        nf4_scale<Real>(tables.scales[absmax[block]], nested[block / kNf4Nested], *offset);
    if constexpr (kWide == 1) {
      const unsigned both = codes[begin / 2];
      const unsigned code = begin % 2 == 0 ? both >> 4 : both & 15U;
      to[0] = static_cast<float>(nf4_number<Real>(tables.levels[code], scale));
    } else {
      static_assert(kWide <= kNf4Block && kNf4Block % kWide == 0 && kWide % 2 == 0);
      struct alignas(kWide / 2) Codes {
        uint8_t at[kWide / 2];
      };
      const Codes both = *reinterpret_cast<const Codes*>(codes + begin / 2);
      for (int e = 0; e < kWide / 2; ++e) {
        const unsigned high = both.at[e] >> 4, low = both.at[e] & 15U;
        to[2 * e] = static_cast<float>(nf4_number<Real>(tables.levels[high], scale));
        to[2 * e + 1] = static_cast<float>(nf4_number<Real>(tables.levels[low], scale));
      }
    }
  }
};

template <class Real>
struct Int8Slab {
  const int8_t* codes;
  const float* scales;  // of rows

  template <int kWide>
  constexpr void decode(int64_t row, int64_t begin, const Nf4Tables&, float (&to)[kWide]) const {
    struct alignas(kWide) Codes {
      int8_t at[kWide];
    };
    const Codes both = *reinterpret_cast<const Codes*>(codes + begin);
    const Real scale(scales[row]), step(kInt8Step);
    for (int e = 0; e < kWide; ++e) {
      to[e] = static_cast<float>(Real(static_cast<float>(both.at[e])) * scale * step);
    }
  }
};

// Numbers of another type than they are multiplied in.
template <class Stored>
struct StoredSlab {
  const Stored* numbers;

  template <int kWide>
  constexpr void decode(int64_t, int64_t begin, const Nf4Tables&, float (&to)[kWide]) const {
    struct alignas(kWide * sizeof(Stored)) Both {
      Stored at[kWide];
    };
    const Both both = *reinterpret_cast<const Both*>(numbers + begin);
    for (int e = 0; e < kWide; ++e) to[e] = static_cast<float>(both.at[e]);
  }
};

// The neighbours that are decoded together: 8 where rows of the matrix and of the slab keep them
// together, else one.
constexpr int slab_group(int64_t matrix_columns, const SlabPlace& place) {
  const bool even = matrix_columns % 8 == 0 && place.column % 8 == 0 && place.columns % 8 == 0;
  return even ? 8 : 1;
}

// Group number i of a slab, row by row, written as To. Groups do not depend on each other.
template <int kWide, class Matrix, class To>
constexpr void decode_group(const Matrix& matrix, int64_t matrix_columns, const SlabPlace& place,
                            const Nf4Tables& tables, int64_t i, To* to) {
  const int64_t groups = place.columns / kWide;
  const int64_t r = i / groups, c = i % groups * kWide;
  float numbers[kWide];
  matrix.decode(place.row + r, (place.row + r) * matrix_columns + place.column + c, tables,
                numbers);
  struct alignas(kWide * sizeof(To)) Group {
    To at[kWide];
  };
  Group group;
  for (int e = 0; e < kWide; ++e) group.at[e] = static_cast<To>(numbers[e]);
  reinterpret_cast<Group*>(to)[i] = group;
}

}  // namespace thimble
