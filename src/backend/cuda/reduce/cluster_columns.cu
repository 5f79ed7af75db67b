#include "backend/cuda/reduce/cluster_columns.cuh"

namespace thimble {
namespace {

__global__ void probe() {}

// Whether the code that this device runs was compiled for clusters.
bool compiled_for_clusters() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, probe) == cudaSuccess && attributes.ptxVersion >= 90;
}

}  // namespace

bool clusters_fit(int64_t rows, int64_t columns, DType dtype, const CudaDevice& device) {
  constexpr int64_t kMostRows = 32;  // of a thread; more want more blocks
  const int64_t strip = 32 / size_of(dtype), down = kClusterThreads * kClusterWide / strip;
  const int64_t blocks = columns / strip * kClusterBlocks;
  return device.architecture >= 90 && columns % strip == 0 && blocks <= device.multiprocessors &&
         rows >= kClusterBlocks && rows <= kMostRows * down * kClusterBlocks &&
         compiled_for_clusters();
}

}  // namespace thimble
