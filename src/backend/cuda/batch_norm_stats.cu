// batch_norm_stats: one pass. Every thread sums around its first element, so that nothing cancels
// whatever the mean; threads and slices are then merged as (count, mean, sum of squared deviations),
// after Chan, Golub and LeVeque.
#include "backend/cuda/columns.cuh"

namespace thimble {
namespace {

struct Moments {
  float count, mean, squares;

  __device__ void merge(const Moments& other) {
    const float total = count + other.count;
    if (other.count == 0) return;
    const float share = other.count / total, shift = other.mean - mean;
    squares += other.squares + shift * shift * count * share;
    mean += shift * share;
    count = total;
  }
};

// Without `partial` there is one slice, and the block writes mean and var.
template <class T, int kWide>
__global__ void __launch_bounds__(kColumnThreads, 2)
    slice_moments(const T* x, ColumnTiles tiles, float* partial, float* mean, float* var) {
  const TilePlace<kWide> place(tiles);
  float first[kWide] = {}, sum[kWide] = {}, squares[kWide] = {};
  const int own = place.begin + place.y;
  const int count =
      place.inside && own < place.end ? (place.end - own + place.down - 1) / place.down : 0;
  const T* const sources[1] = {x};
  for_each_row<T, kWide, 1>(tiles, place, sources, [&](int row, const Vec<T, kWide>(&in)[1]) {
#pragma unroll
    for (int e = 0; e < kWide; ++e) {
      const float value = widen(in[0].at[e]);
      if (row == own) first[e] = value;
      const float deviation = value - first[e];
      sum[e] += deviation;
      squares[e] += deviation * deviation;
    }
  });

  constexpr int kMostWarps = kColumnThreads / 32;
  __shared__ float counts[kMostWarps][32];
  __shared__ float2 moments[kMostWarps][32 * kWide];
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) / 32;
  const float n = static_cast<float>(count);
#pragma unroll
  for (int e = 0; e < kWide; ++e) {
    Moments own_moments{n, 0, 0};
    if (count > 0) {
      own_moments.mean = first[e] + sum[e] / n;
      const float spread = squares[e] - sum[e] * sum[e] / n;
      own_moments.squares = spread < 0 ? 0 : spread;  // keeps NaN
    }
    for (int offset = 16; offset >= tiles.across; offset /= 2) {
      Moments other;
      other.count = __shfl_down_sync(~0u, own_moments.count, offset);
      other.mean = __shfl_down_sync(~0u, own_moments.mean, offset);
      other.squares = __shfl_down_sync(~0u, own_moments.squares, offset);
      own_moments.merge(other);
    }
    if (lane < tiles.across) {
      counts[warp][lane] = own_moments.count;
      moments[warp][lane * kWide + e] = make_float2(own_moments.mean, own_moments.squares);
    }
  }
  __syncthreads();
  const int at = static_cast<int>(threadIdx.x);
  const int column = static_cast<int>(blockIdx.y) * tiles.across * kWide + at;
  if (at >= tiles.across * kWide || column >= tiles.columns) return;
  Moments all{counts[0][at / kWide], moments[0][at].x, moments[0][at].y};
  for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) {
    all.merge({counts[w][at / kWide], moments[w][at].x, moments[w][at].y});
  }
  if (partial != nullptr) {
    float* const to = partial + int64_t{blockIdx.x} * 2 * tiles.columns + column;
    to[0] = all.mean;
    to[tiles.columns] = all.squares;
  } else {
    mean[column] = all.mean;
    var[column] = all.squares / all.count;
  }
}

// 32 columns per block, 32 threads for each.
__global__ void __launch_bounds__(1024)
    merge_moments(const float* partial, ColumnTiles tiles, float* mean, float* var) {
  const int lane = static_cast<int>(threadIdx.x) & 31, part = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * 32 + lane;
  double sum = 0, of_squares = 0, squares = 0;
  if (column < tiles.columns) {
#pragma unroll 4
    for (int s = part; s < tiles.slices; s += 32) {
      const int rows = min(tiles.rows_each, tiles.rows - s * tiles.rows_each);
      const float* const from = partial + int64_t{s} * 2 * tiles.columns + column;
      const double own_mean = static_cast<double>(from[0]);
      sum += static_cast<double>(rows) * own_mean;
      of_squares += static_cast<double>(rows) * own_mean * own_mean;
      squares += static_cast<double>(from[tiles.columns]);
    }
  }
  __shared__ double sums[3][32][33];
  sums[0][part][lane] = sum;
  sums[1][part][lane] = of_squares;
  sums[2][part][lane] = squares;
  __syncthreads();
  // Now a warp has one column, a lane one of its parts.
  sum = sums[0][lane][part];
  of_squares = sums[1][lane][part];
  squares = sums[2][lane][part];
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(~0u, sum, offset);
    of_squares += __shfl_down_sync(~0u, of_squares, offset);
    squares += __shfl_down_sync(~0u, squares, offset);
  }
  const int own = static_cast<int>(blockIdx.x) * 32 + part;
  if (lane != 0 || own >= tiles.columns) return;
  const double rows = static_cast<double>(tiles.rows), center = sum / rows;
  // The slices' own deviations, and those of their means.
  const double between = of_squares - sum * center;
  mean[own] = static_cast<float>(center);
  var[own] = static_cast<float>((squares + (between < 0 ? 0 : between)) / rows);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& x = s.inputs[0];
  if (!on_device(x.dtype) || x.elements() == 0) return nullptr;
  const int64_t columns = x.shape.back(), rows = x.shape.product(0, x.shape.rank() - 1);
  const ColumnTiles tiles = sum_tiles(rows, columns, x.dtype, 2, device);
  const auto launch = [&device, tiles](const KernelArgs& args) {
    float* const mean = args.outputs[0].as<float>();
    float* const var = args.outputs[1].as<float>();
    float* const partial =
        tiles.slices > 1 ? reinterpret_cast<float*>(args.workspace) : nullptr;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(tiles.columns, [&](auto wide) {
        slice_moments<T, wide.value><<<tiles.grid(), tiles.threads, 0, device.stream>>>(
            args.inputs[0].as<T>(), tiles, partial, mean, var);
      });
    });
    if (partial != nullptr) {
      const unsigned blocks = static_cast<unsigned>((tiles.columns + 31) / 32);
      merge_moments<<<blocks, 1024, 0, device.stream>>>(partial, tiles, mean, var);
    }
    check_launch("batch_norm_stats");
  };
  return own_kernel(launch, partial_bytes(tiles, 2));
}

}  // namespace

extern const CudaKernel cuda_batch_norm_stats;
const CudaKernel cuda_batch_norm_stats{"batch_norm_stats", make};

}  // namespace thimble
