// softmax_backward: a warp or a block per row. dx may be y or dy: a row is summed by all before any
// of it is written.
#include "backend/cuda/reduce/last_axis.cuh"

namespace thimble {
namespace {

template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    softmax_gradients(const T* y, const T* dy, T* dx, int64_t rows, int columns, bool log) {
  const RowGroup<kThreads> group;
  for (int64_t r = group.first_row; r < rows; r += group.rows_apart) {
    float sum = 0;
    for (int c = group.lane; c < columns; c += kThreads) {
      const float one = widen(dy[r * columns + c]);
      sum += log ? one : widen(y[r * columns + c]) * one;
    }
    sum = group.sum(sum);
    for (int c = group.lane; c < columns; c += kThreads) {
      const int64_t at = r * columns + c;
      dx[at] = narrow<T>(log ? widen(dy[at]) - expf(widen(y[at])) * sum
                             : widen(y[at]) * (widen(dy[at]) - sum));
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_over_rows(
      s, device,
      [&device, log = s.attrs.integer("log", 0) != 0](auto tag, auto threads, unsigned blocks,
                                                      int64_t rows, int columns,
                                                      const KernelArgs& args) {
        using T = typename decltype(tag)::type;
        softmax_gradients<T, threads.value><<<blocks, kRowThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(), rows, columns,
            log);
      });
}

}  // namespace

extern const CudaKernel cuda_softmax_backward{"softmax_backward", make};

}  // namespace thimble
