// adafactor_update: of weights with rows and columns, three launches: means of rows and columns, the sums of u^2, the step.
#include "backend/cuda/update/adafactor_vector.cuh"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 6;
constexpr int kColumns = 32;  // that a block sums side by side

// A block for each row, then one for every kColumns columns.
template <class T>
__global__ void average(const T* g, const float* rows, const float* columns, float* next_rows,
                        float* next_columns, int64_t row_count, int64_t column_count,
                        AdafactorStep adafactor) {
  const float factor = adafactor.extras.gradient_factor();
  if (factor == 0) return;
  const float taken = adafactor.take();
  float squares = 0;
  if (blockIdx.x < row_count) {
    const int64_t row = blockIdx.x;
    for (int64_t j = threadIdx.x; j < column_count; j += kBlockThreads) {
      const float x = product(factor, widen(g[row * column_count + j]));
      squares += x * x + adafactor.epsilon;
    }
    const double total = block_total<kBlockThreads>(static_cast<double>(squares));
    if (threadIdx.x == 0) {
      const auto mean = static_cast<float>(total / static_cast<double>(column_count));
      next_rows[row] = adafactor.averaged(rows[row], mean, taken);
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
      const float x = product(factor, widen(g[i * column_count + j]));
      squares += x * x + adafactor.epsilon;
    }
  }
  sums[lane][column] = squares;
  __syncthreads();
  if (lane == 0 && j < column_count) {
    double total = 0;
    for (int other = 0; other < kLanes; ++other) total += static_cast<double>(sums[other][column]);
    const auto mean = static_cast<float>(total / static_cast<double>(row_count));
    next_columns[j] = adafactor.averaged(columns[j], mean, taken);
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

  __device__ int64_t count() const { return row_count * column_count; }
  // Of the elements from `first` on, by 32 bits where they do.
  __device__ Quad roots(int64_t first, int valid, float mean) const {
    int64_t row = (first >> 32) == 0 && (column_count >> 32) == 0
                      ? static_cast<uint32_t>(first) / static_cast<uint32_t>(column_count)
                      : first / column_count;
    int64_t column = first - row * column_count;
    Quad result = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e >= valid) continue;
      result.at[e] = sqrtf(rows[row] / mean) * sqrtf(columns[column]);
      if (++column == column_count) column = 0, ++row;
    }
    return result;
  }
};

__global__ void measure(Numbers g, Factored moments, UpdateExtras extras, double* parts) {
  const float factor = extras.gradient_factor();
  if (factor == 0) return;
  const float mean = mean_of(moments.rows, moments.row_count);
  const int64_t quads = (moments.count() + 3) / 4;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  float squares = 0;
#pragma unroll 2
  for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; q < quads; q += threads) {
    const int valid = valid_in(q, moments.count());
    const Quad x = load_gradient(g, q, valid, factor);
    const Quad roots = moments.roots(4 * q, valid, mean);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float u = e < valid ? x.at[e] / roots.at[e] : 0;
      squares += u * u;
    }
  }
  const double total = block_total<kBlockThreads>(static_cast<double>(squares));
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void move(Numbers w, Numbers g, Factored moments, Numbers next_w,
                     AdafactorStep adafactor, const double* parts) {
  const float factor = adafactor.extras.gradient_factor();
  if (factor == 0) return;
  const UpdateRounding rounding = adafactor.extras.rounding();
  const float mean = mean_of(moments.rows, moments.row_count);
  const float along = adafactor.length(parts, gridDim.x, moments.count());
  const int64_t quads = (moments.count() + 3) / 4;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
#pragma unroll 2
  for (int64_t q = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; q < quads; q += threads) {
    const int valid = valid_in(q, moments.count());
    const Quad x = load_gradient(g, q, valid, factor);
    const Quad roots = moments.roots(4 * q, valid, mean);
    adafactor.move_quad(w, q, valid, along, rounding, next_w,
                        [&](int e) { return x.at[e] / roots.at[e]; });
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (s.inputs[0].shape.rank() < 2) return make_adafactor_vector(s, device);
  const int64_t row_count = s.inputs[2].elements(), column_count = s.inputs[3].elements();
  const int64_t sums = row_count + (column_count + kColumns - 1) / kColumns;
  if (!on_device(s.inputs[0].dtype) || !on_device(s.inputs[1].dtype) || sums >= int64_t{1} << 31) {
    return nullptr;
  }
  const ExtraInputs extras(s, kOwnInputs);
  const unsigned blocks = adafactor_blocks(s.inputs[0].elements(), device);
  const AdafactorStep settings(s.attrs);
  return own_kernel(
      [&device, blocks, settings, row_count, column_count, sums, extras](const KernelArgs& args) {
        AdafactorStep adafactor = settings;
        adafactor.lr = args.inputs[4].as<float>();
        adafactor.step = args.inputs[5].as<float>();
        adafactor.extras = extras.of(args);
        auto* const parts = reinterpret_cast<double*>(args.workspace);
        float* const rows = args.outputs[1].as<float>();
        float* const columns = args.outputs[2].as<float>();
        const Factored moments = {rows, columns, row_count, column_count};
        const Numbers w = numbers_of(args.inputs[0]), g = numbers_of(args.inputs[1]);
        with_device_type(g.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          average<<<static_cast<unsigned>(sums), kBlockThreads, 0, device.stream>>>(
              args.inputs[1].as<T>(), args.inputs[2].as<float>(), args.inputs[3].as<float>(), rows,
              columns, row_count, column_count, adafactor);
        });
        measure<<<blocks, kBlockThreads, 0, device.stream>>>(g, moments, adafactor.extras, parts);
        move<<<blocks, kBlockThreads, 0, device.stream>>>(
            w, g, moments, numbers_of(args.outputs[0]), adafactor, parts);
        check_launch("adafactor_update");
      },
      adafactor_workspace(blocks));
}

}  // namespace

extern const CudaKernel cuda_adafactor_update{"adafactor_update", make};

}  // namespace thimble
