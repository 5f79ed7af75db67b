// rms_norm_backward: rows in registers; else a warp or a block per row, and a thread per column for
// the gradient of the scale, which comes first, since dx may overwrite dy.
#include "backend/cuda/normalise/row_normalize.cuh"
#include "backend/cuda/reduce/last_axis.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kRowThreads)
    scale_columns(const T* x, const float* rstd, const T* dy, float* dgamma, int64_t rows,
                  int columns, bool add) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= columns) return;
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * columns + c;
    sum += static_cast<double>(widen(dy[at]) * widen(x[at]) * rstd[r]);
  }
  store(dgamma + c, static_cast<float>(sum), add);
}

template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    divided_row_gradients(const T* x, const float* rstd, const float* gamma, const T* dy, T* dx,
                          int64_t rows, int columns, bool add) {
  const RowGroup<kThreads> group;
  for (int64_t r = group.first_row; r < rows; r += group.rows_apart) {
    const float inverse = rstd[r];
    float own = 0;
    for (int c = group.lane; c < columns; c += kThreads) {
      own += widen(dy[r * columns + c]) * gamma[c] * widen(x[r * columns + c]) * inverse;
    }
    const float mean = group.sum(own) / static_cast<float>(columns);
    for (int c = group.lane; c < columns; c += kThreads) {
      const int64_t at = r * columns + c;
      store(dx + at, inverse * (widen(dy[at]) * gamma[c] - widen(x[at]) * inverse * mean), add);
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (fits_a_warp(s.inputs[0])) return make_row_norm_gradients<false>(s, device);
  return make_over_rows(
      s, device,
      [&device](auto tag, auto threads, unsigned blocks, int64_t rows, int columns,
                const KernelArgs& args) {
        using T = typename decltype(tag)::type;
        const T* const x = args.inputs[0].as<T>();
        const float* const rstd = args.inputs[1].as<float>();
        const T* const dy = args.inputs[3].as<T>();
        const unsigned strips = static_cast<unsigned>((columns + kRowThreads - 1) / kRowThreads);
        scale_columns<<<strips, kRowThreads, 0, device.stream>>>(
            x, rstd, dy, args.outputs[1].as<float>(), rows, columns, args.adds_into(1));
        divided_row_gradients<T, threads.value><<<blocks, kRowThreads, 0, device.stream>>>(
            x, rstd, args.inputs[2].as<float>(), dy, args.outputs[0].as<T>(), rows, columns,
            args.adds_into(0));
      });
}

}  // namespace

extern const CudaKernel cuda_rms_norm_backward{"rms_norm_backward", make};

}  // namespace thimble
