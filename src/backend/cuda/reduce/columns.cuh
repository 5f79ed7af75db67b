// Reductions over the rows of tensors seen as [rows, columns]. A block takes a strip of adjacent
// columns and a slice of rows. Its threads run along adjacent columns first, then along rows. So a
// thread stays in its columns and keeps their sums in registers.
#pragma once

#include <algorithm>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"

namespace thimble {

// Adjacent numbers that one access moves. REQUIRES of its address: a multiple of its size.
template <class T, int kWide>
struct alignas(sizeof(T) * kWide) Vec {
  T at[kWide];
};

constexpr int kColumnThreads = 512;
// Rows whose loads a thread has in flight together, at most.
constexpr int kRowsAtOnce = 4;

// How blocks share out a tensor; grid (slices, strips). REQUIRES: fewer than 2^30 rows.
struct ColumnTiles {
  int rows = 0;       // all of them, or those of one of several tensors of that shape
  int rows_each = 0;  // of a slice
  int columns = 0;
  int across = 1;  // threads side by side, a power of two up to 32
  int threads = kColumnThreads;
  int strips = 1;
  int slices = 1;  // of a tensor

  dim3 grid(int64_t tensors = 1) const {
    return dim3(static_cast<unsigned>(slices * tensors), static_cast<unsigned>(strips));
  }
};

// Numbers that a thread takes side by side: 4 where rows keep them aligned.
constexpr int wide_of(int64_t columns) { return columns % 4 == 0 ? 4 : 1; }

// Strips no narrower than 128 bytes, where there are so many columns.
inline ColumnTiles column_tiles(int64_t rows, int64_t columns, DType dtype) {
  const int wide = wide_of(columns);
  const int64_t packs = columns / wide;
  const int64_t widest = wide == 1 ? 32 : size_of(dtype) == 4 ? 8 : 16;
  ColumnTiles tiles;
  tiles.rows = tiles.rows_each = static_cast<int>(rows);
  tiles.columns = static_cast<int>(columns);
  while (tiles.across < widest && tiles.across < packs) tiles.across *= 2;
  tiles.strips = static_cast<int>((packs + tiles.across - 1) / tiles.across);
  return tiles;
}

// Cuts rows into at most `most` slices of `least` rows per thread or more; no slice is empty.
inline void slice_rows(ColumnTiles& tiles, int64_t most, int64_t least) {
  const int64_t down = tiles.threads / tiles.across;
  const int64_t wanted =
      std::clamp<int64_t>(tiles.rows / (down * least), 1, std::max<int64_t>(most, 1));
  tiles.rows_each = static_cast<int>(std::max<int64_t>(1, (tiles.rows + wanted - 1) / wanted));
  tiles.slices = std::max(1, (tiles.rows + tiles.rows_each - 1) / tiles.rows_each);
}

// For maps: as many blocks as keep the device busy.
inline ColumnTiles map_tiles(int64_t rows, int64_t columns, DType dtype, const CudaDevice& device) {
  ColumnTiles tiles = column_tiles(rows, columns, dtype);
  tiles.threads = 256;
  slice_rows(tiles, (int64_t{device.multiprocessors} * 8 + tiles.strips - 1) / tiles.strips,
             kRowsAtOnce);
  return tiles;
}

// Partial sums of slices wait in scratch of at most this much, or of little beside the tensor.
constexpr int64_t kPartialBytes = 64 << 10;

// For sums of `sums` floats per column and slice. One slice needs no partial sums and no second
// launch, which is worth some rows.
inline ColumnTiles sum_tiles(int64_t rows, int64_t columns, DType dtype, int sums,
                             const CudaDevice& device) {
  ColumnTiles tiles = column_tiles(rows, columns, dtype);
  const int64_t down = tiles.threads / tiles.across;
  if (rows <= down * 4 * kRowsAtOnce) return tiles;
  const int64_t room = std::max(kPartialBytes, rows * columns * size_of(dtype) / 64);
  const int64_t fit = room / (columns * sums * static_cast<int64_t>(sizeof(float)));
  const int64_t busy = int64_t{device.multiprocessors} * 2 / tiles.strips;  // all at the same time
  slice_rows(tiles, std::max<int64_t>(std::min(fit, busy), 2), kRowsAtOnce);
  return tiles;
}

inline Bytes partial_bytes(const ColumnTiles& tiles, int sums) {
  if (tiles.slices == 1) return {};
  return Bytes(int64_t{tiles.slices} * tiles.columns * sums * static_cast<int64_t>(sizeof(float)));
}

// Where a thread of a block works.
template <int kWide>
struct TilePlace {
  int x, y, down;  // of the block's threads
  int column;      // the first of kWide
  bool inside;
  int begin, end;  // rows of the slice, counted from the first row of all groups

  __device__ explicit TilePlace(const ColumnTiles& t)
      : x(static_cast<int>(threadIdx.x) & (t.across - 1)),
        y(static_cast<int>(threadIdx.x) / t.across),
        down(static_cast<int>(blockDim.x) / t.across),
        column((static_cast<int>(blockIdx.y) * t.across + x) * kWide),
        inside(column < t.columns) {
    const int group = static_cast<int>(blockIdx.x) / t.slices;
    const int first = static_cast<int>(blockIdx.x) % t.slices * t.rows_each;
    begin = group * t.rows + first;
    end = group * t.rows + min(t.rows, first + t.rows_each);
  }
};

// The thread's rows of its slice, kSources numbers' packs at a time, with the loads of several rows
// in flight. The first are on their way once it is made: what a kernel does before for_each() takes
// no time of its own.
template <class T, int kWide, int kSources>
class RowReader {
 public:
  __device__ RowReader(const ColumnTiles& t, const TilePlace<kWide>& place,
                       const T* const (&sources)[kSources])
      : columns_(t.columns), place_(place) {
#pragma unroll
    for (int k = 0; k < kSources; ++k) sources_[k] = sources[k];
    if (place.inside) load(place.begin + place.y);
  }

  // Calls body(row, packs).
  template <class Body>
  __device__ void for_each(const Body& body) {
    if (!place_.inside) return;
    for (int row = place_.begin + place_.y; row < place_.end;) {
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (row + u * place_.down < place_.end) body(row + u * place_.down, in_[u]);
      }
      row += kAtOnce * place_.down;
      load(row);
    }
  }

 private:
  // More than 64 bytes would spill.
  static constexpr int kAtOnce = kSources * sizeof(Vec<T, kWide>) > 16 ? 2 : kRowsAtOnce;

  __device__ void load(int row) {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (row + u * place_.down >= place_.end) continue;
      const int64_t at = int64_t{row + u * place_.down} * columns_ + place_.column;
#pragma unroll
      for (int k = 0; k < kSources; ++k) {
        in_[u][k] = *reinterpret_cast<const Vec<T, kWide>*>(sources_[k] + at);
      }
    }
  }

  const int columns_;
  const TilePlace<kWide> place_;
  const T* sources_[kSources];
  Vec<T, kWide> in_[kAtOnce][kSources];
};

// Calls body(row, packs) for the thread's rows of its slice.
template <class T, int kWide, int kSources, class Body>
__device__ void for_each_row(const ColumnTiles& t, const TilePlace<kWide>& place,
                             const T* const (&sources)[kSources], const Body& body) {
  RowReader<T, kWide, kSources>(t, place, sources).for_each(body);
}

// Per-column data of the block's strip, computed once for each column: of(column), in shared
// memory. REQUIRES: all threads call it.
template <class Channel, int kWide, class Of>
__device__ void load_channels(const ColumnTiles& t, Channel (&strip)[32 * kWide], const Of& of) {
  const int width = t.across * kWide, first = static_cast<int>(blockIdx.y) * width;
  for (int c = static_cast<int>(threadIdx.x); c < width && first + c < t.columns;
       c += static_cast<int>(blockDim.x)) {
    strip[c] = of(first + c);
  }
  __syncthreads();
}

// Writes or adds kWide numbers at `to`.
template <class T, int kWide>
__device__ void store_wide(T* to, const float (&value)[kWide], bool add) {
  Vec<T, kWide>* const there = reinterpret_cast<Vec<T, kWide>*>(to);
  Vec<T, kWide> result{};
  if (add) result = *there;
#pragma unroll
  for (int e = 0; e < kWide; ++e) store(&result.at[e], value[e], add);
  *there = result;
}

// y = map(x, channel): Map::Channel is what a column needs, map.channel(column) reads it.
template <class T, int kWide, class Map>
__global__ void __launch_bounds__(256) map_columns(const T* x, T* y, ColumnTiles tiles, Map map) {
  using Channel = typename Map::Channel;
  __shared__ Channel strip[32 * kWide];
  const TilePlace<kWide> place(tiles);
  const T* const sources[1] = {x};
  RowReader<T, kWide, 1> rows(tiles, place, sources);
  load_channels<Channel, kWide>(tiles, strip, [&](int column) { return map.channel(column); });
  Channel channel[kWide];
#pragma unroll
  for (int e = 0; e < kWide; ++e) channel[e] = strip[place.x * kWide + e];
  rows.for_each([&](int row, const Vec<T, kWide>(&in)[1]) {
    float out[kWide];
#pragma unroll
    for (int e = 0; e < kWide; ++e) out[e] = map(widen(in[0].at[e]), channel[e]);
    store_wide<T, kWide>(y + int64_t{row} * tiles.columns + place.column, out, false);
  });
}

// Calls body(kWide as an integral constant) with the width that suits `columns`.
template <class Body>
void with_wide(int64_t columns, const Body& body) {
  if (wide_of(columns) == 4) {
    body(std::integral_constant<int, 4>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

template <class T, class Map>
void launch_map_columns(const T* x, T* y, const ColumnTiles& tiles, const Map& map,
                        const CudaDevice& device) {
  with_wide(tiles.columns, [&](auto wide) {
    map_columns<T, wide.value><<<tiles.grid(), tiles.threads, 0, device.stream>>>(x, y, tiles, map);
  });
}

}  // namespace thimble
