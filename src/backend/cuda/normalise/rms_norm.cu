// rms_norm: rows in registers; else a warp or a block per row.
#include "backend/cuda/normalise/row_normalize.cuh"
#include "backend/cuda/reduce/last_axis.cuh"

namespace thimble {
namespace {

// y may be x: a row is read by all before any of it is written.
template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    divide_rows(const T* x, const float* gamma, T* y, float* rstd, int64_t rows, int columns,
                float epsilon) {
  const RowGroup<kThreads> group;
  for (int64_t r = group.first_row; r < rows; r += group.rows_apart) {
    const T* const from = x + r * columns;
    float own = 0;
    for (int c = group.lane; c < columns; c += kThreads) own += widen(from[c]) * widen(from[c]);
    const float inverse = rsqrtf(group.sum(own) / static_cast<float>(columns) + epsilon);
    for (int c = group.lane; c < columns; c += kThreads) {
      y[r * columns + c] = narrow<T>(widen(from[c]) * inverse * gamma[c]);
    }
    if (group.lane == 0) rstd[r] = inverse;
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (fits_a_warp(s.inputs[0])) return make_normalize_rows<false>(device);
  return make_over_rows(s, device,
                        [&device](auto tag, auto threads, unsigned blocks, int64_t rows,
                                  int columns, const KernelArgs& args) {
                          using T = typename decltype(tag)::type;
                          divide_rows<T, threads.value><<<blocks, kRowThreads, 0, device.stream>>>(
                              args.inputs[0].as<T>(), args.inputs[1].as<float>(),
                              args.outputs[0].as<T>(), args.outputs[1].as<float>(), rows, columns,
                              static_cast<float>(args.attrs->real("epsilon", 1e-5)));
                        });
}

}  // namespace

extern const CudaKernel cuda_rms_norm{"rms_norm", make};

}  // namespace thimble
