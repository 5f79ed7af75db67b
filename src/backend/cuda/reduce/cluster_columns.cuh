// Sums down the columns of a tensor, in one launch and known to every block that added to them: a
// strip of columns is a cluster of blocks (compute capability 9.0), which add up their sums through
// each other's shared memory.
//
//   rows    0 ..    block 0  ┐
//           n ..    block 1  ├ sums of 32 bytes' columns, known to all blocks of the cluster
//          2n ..    ...      ┘
//
// For tensors of some thousand rows that all blocks can work on at the same time: there a second
// launch would take as long as the work.
#pragma once

#include <cooperative_groups.h>

#include "backend/cuda/reduce/columns.cuh"

namespace thimble {

constexpr int kClusterBlocks = 8;
constexpr int kClusterThreads = 512;
constexpr int kClusterWide = 4;  // columns of a thread

template <class T>
struct ClusterShape {
  static constexpr int kStrip = 32 / static_cast<int>(sizeof(T));  // columns of a cluster
  static constexpr int kAcross = kStrip / kClusterWide;
  static constexpr int kDown = kClusterThreads / kAcross;  // rows that a block has at a time
  static constexpr int kHeld = sizeof(T) == 2 ? 8 : 4;     // rows that a thread keeps in registers
};

struct ClusterTiles {
  int rows, columns, rows_each;  // of a block
};

// Where a thread works: rows first, first + kDown, ... of four columns.
template <class T>
struct ClusterPlace {
  using Shape = ClusterShape<T>;
  int column, first, end;

  __device__ explicit ClusterPlace(const ClusterTiles& t)
      : column(static_cast<int>(blockIdx.y) * Shape::kStrip +
               static_cast<int>(threadIdx.x) % Shape::kAcross * kClusterWide),
        first(static_cast<int>(blockIdx.x) * t.rows_each +
              static_cast<int>(threadIdx.x) / Shape::kAcross),
        end(min(t.rows, (static_cast<int>(blockIdx.x) + 1) * t.rows_each)) {}
};

// A thread's rows of several tensors: the first kHeld are read once, others whenever they are gone
// through.
template <class T, int kSources>
class ClusterRows {
  using Shape = ClusterShape<T>;
  using Four = Vec<T, kClusterWide>;

 public:
  __device__ ClusterRows(const ClusterTiles& t, const ClusterPlace<T>& place,
                         const T* const (&sources)[kSources])
      : columns_(t.columns), place_(place) {
#pragma unroll
    for (int k = 0; k < kSources; ++k) sources_[k] = sources[k];
#pragma unroll
    for (int u = 0; u < Shape::kHeld; ++u) {
      const int row = place.first + u * Shape::kDown;
      if (row < place.end) load(row, held_[u]);
    }
  }

  // body(row, one Vec of each source), for each row.
  template <class Body>
  __device__ void for_each(const Body& body) const {
#pragma unroll
    for (int u = 0; u < Shape::kHeld; ++u) {
      const int row = place_.first + u * Shape::kDown;
      if (row < place_.end) body(row, held_[u]);
    }
    constexpr int kAtOnce = 2;
    for (int row = place_.first + Shape::kHeld * Shape::kDown; row < place_.end;
         row += kAtOnce * Shape::kDown) {
      Four in[kAtOnce][kSources];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (row + u * Shape::kDown < place_.end) load(row + u * Shape::kDown, in[u]);
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (row + u * Shape::kDown < place_.end) body(row + u * Shape::kDown, in[u]);
      }
    }
  }

 private:
  __device__ void load(int row, Four (&to)[kSources]) const {
    const int64_t at = int64_t{row} * columns_ + place_.column;
#pragma unroll
    for (int k = 0; k < kSources; ++k) to[k] = *reinterpret_cast<const Four*>(sources_[k] + at);
  }

  const int columns_;
  const ClusterPlace<T> place_;
  const T* sources_[kSources];
  Four held_[Shape::kHeld][kSources];
};

// The threads' own sums, added up over the cluster in one order: then(total[k][column of the
// strip]) in every thread of every block. All threads must come here, once.
template <class T, int kSums, class Then>
__device__ void sum_cluster(float (&sum)[kSums][kClusterWide], const Then& then) {
#if __CUDA_ARCH__ >= 900
  using Shape = ClusterShape<T>;
  constexpr int kWarps = kClusterThreads / 32, kValues = kSums * Shape::kStrip;
  __shared__ float of_warps[kWarps][kValues];
  __shared__ float of_block[kValues];
  __shared__ double total[kValues];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
#pragma unroll
  for (int k = 0; k < kSums; ++k) {
#pragma unroll
    for (int e = 0; e < kClusterWide; ++e) {
      for (int offset = 16; offset >= Shape::kAcross; offset /= 2) {
        sum[k][e] += __shfl_down_sync(~0u, sum[k][e], offset);
      }
      if (lane < Shape::kAcross) {
        of_warps[warp][k * Shape::kStrip + lane * kClusterWide + e] = sum[k][e];
      }
    }
  }
  __syncthreads();
  static_assert(kValues * kWarps <= kClusterThreads);
  if (thread < kValues * kWarps) {
    float own = of_warps[thread % kWarps][thread / kWarps];
    for (int offset = kWarps / 2; offset > 0; offset /= 2) {
      own += __shfl_down_sync(~0u, own, offset, kWarps);
    }
    if (thread % kWarps == 0) of_block[thread / kWarps] = own;
  }
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  if (thread < kValues) {
    float from[kClusterBlocks];
#pragma unroll
    for (int b = 0; b < kClusterBlocks; ++b) {
      from[b] = cluster.map_shared_rank(of_block, static_cast<unsigned>(b))[thread];
    }
    double all = 0;
#pragma unroll
    for (int b = 0; b < kClusterBlocks; ++b) all += static_cast<double>(from[b]);
    total[thread] = all;
  }
  __syncthreads();
  auto arrived = cluster.barrier_arrive();
  then(reinterpret_cast<const double(&)[kSums][Shape::kStrip]>(total));
  cluster.barrier_wait(std::move(arrived));
#endif
}

// Whether clusters suit the tensor, and this build's code for the device at hand has them.
bool clusters_fit(int64_t rows, int64_t columns, DType dtype, const CudaDevice& device);

inline ClusterTiles cluster_tiles(int64_t rows, int64_t columns) {
  const int64_t each = (rows + kClusterBlocks - 1) / kClusterBlocks;
  return {static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(each)};
}

// `strip`: columns of a cluster.
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), const ClusterTiles& tiles, int strip,
                     const CudaDevice& device, const char* what, Arguments... arguments) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kClusterBlocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kClusterBlocks, static_cast<unsigned>(tiles.columns / strip));
  config.blockDim = dim3(kClusterThreads);
  config.stream = device.stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), what);
}

}  // namespace thimble
