// adafactor_update: three launches: means of rows and columns, the sums of u^2, the step.
#include "backend/cuda/adafactor.cuh"

namespace thimble {
namespace {

constexpr int kColumns = 32;  // that a block sums side by side

// A block for each row, then one for every kColumns columns.
template <class T>
__global__ void average(const T* g, const float* rows, const float* columns, float* next_rows,
                        float* next_columns, int64_t row_count, int64_t column_count,
                        Adafactor factor) {
  const float taken = factor.take();
  float squares = 0;
  if (blockIdx.x < row_count) {
    const int64_t row = blockIdx.x;
    for (int64_t j = threadIdx.x; j < column_count; j += kBlockThreads) {
      const float x = widen(g[row * column_count + j]);
      squares += x * x + factor.epsilon;
    }
    const double total = block_total<kBlockThreads>(static_cast<double>(squares));
    if (threadIdx.x == 0) {
      const auto mean = static_cast<float>(total / static_cast<double>(column_count));
      next_rows[row] = factor.averaged(rows[row], mean, taken);
    }
    return;
  }
  constexpr int kLanes = kBlockThreads / kColumns;
  __shared__ float sums[kLanes][kColumns];
  const int column = threadIdx.x % kColumns, lane = threadIdx.x / kColumns;
  const int64_t j = (blockIdx.x - row_count) * kColumns + column;
  if (j < column_count) {
#pragma unroll 4
    for (int64_t i = lane; i < row_count; i += kLanes) {
      const float x = widen(g[i * column_count + j]);
      squares += x * x + factor.epsilon;
    }
  }
  sums[lane][column] = squares;
  __syncthreads();
  if (lane == 0 && j < column_count) {
    double total = 0;
    for (int other = 0; other < kLanes; ++other) total += static_cast<double>(sums[other][column]);
    const auto mean = static_cast<float>(total / static_cast<double>(row_count));
    next_columns[j] = factor.averaged(columns[j], mean, taken);
  }
}

// The mean of all rows, in every thread; each block finds the same bits.
__device__ float mean_of(const float* rows, int64_t count) {
  float part = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) part += rows[i];
  const double total = block_total<kBlockThreads>(static_cast<double>(part));
  return static_cast<float>(total / static_cast<double>(count));
}

struct Factored {
  const float* rows;
  const float* columns;
  int64_t row_count, column_count;

  // By 32 bits where they do.
  __device__ float root(int64_t i, float mean) const {
    const int64_t row = (i >> 32) == 0 && (column_count >> 32) == 0
                            ? static_cast<uint32_t>(i) / static_cast<uint32_t>(column_count)
                            : i / column_count;
    return sqrtf(rows[row] / mean) * sqrtf(columns[i - row * column_count]);
  }
};

template <class T>
__global__ void measure(const T* g, Factored moments, double* parts) {
  const float mean = mean_of(moments.rows, moments.row_count);
  const int64_t count = moments.row_count * moments.column_count;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  float squares = 0;
#pragma unroll 4
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    const float u = widen(g[i]) / moments.root(i, mean);
    squares += u * u;
  }
  const double total = block_total<kBlockThreads>(static_cast<double>(squares));
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

template <class T>
__global__ void move(const T* w, const T* g, Factored moments, T* next_w, Adafactor factor,
                     const double* parts) {
  const int64_t count = moments.row_count * moments.column_count;
  const float mean = mean_of(moments.rows, moments.row_count);
  const float along = factor.length(parts, gridDim.x, count);
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
#pragma unroll 4
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    const float u = widen(g[i]) / moments.root(i, mean);
    next_w[i] = narrow<T>(factor.moved(widen(w[i]), u, along));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const int64_t row_count = s.inputs[2].elements(), column_count = s.inputs[3].elements();
  const int64_t sums = row_count + (column_count + kColumns - 1) / kColumns;
  if (!on_device(s.inputs[0].dtype) || sums >= int64_t{1} << 31) return nullptr;
  const unsigned blocks = adafactor_blocks(s.inputs[0].elements(), device);
  const Adafactor settings(s.attrs);
  return own_kernel(
      [&device, blocks, settings, row_count, column_count, sums](const KernelArgs& args) {
        Adafactor factor = settings;
        factor.lr = args.inputs[4].as<float>();
        factor.step = args.inputs[5].as<float>();
        auto* const parts = reinterpret_cast<double*>(args.workspace);
        float* const rows = args.outputs[1].as<float>();
        float* const columns = args.outputs[2].as<float>();
        const Factored moments = {rows, columns, row_count, column_count};
        with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const T* const g = args.inputs[1].as<T>();
          average<<<static_cast<unsigned>(sums), kBlockThreads, 0, device.stream>>>(
              g, args.inputs[2].as<float>(), args.inputs[3].as<float>(), rows, columns, row_count,
              column_count, factor);
          measure<<<blocks, kBlockThreads, 0, device.stream>>>(g, moments, parts);
          move<<<blocks, kBlockThreads, 0, device.stream>>>(args.inputs[0].as<T>(), g, moments,
                                                            args.outputs[0].as<T>(), factor, parts);
        });
        check_launch("adafactor_update");
      },
      adafactor_workspace(blocks));
}

}  // namespace

extern const CudaKernel cuda_adafactor_update;
const CudaKernel cuda_adafactor_update{"adafactor_update", make};

}  // namespace thimble
