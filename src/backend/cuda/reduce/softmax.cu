// softmax: a warp or a block per row. y may be x: a row is read by all before any of it is written.
#include "backend/cuda/reduce/last_axis.cuh"

namespace thimble {
namespace {

template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    softmax_rows(const T* x, T* y, int64_t rows, int columns, bool log) {
  const RowGroup<kThreads> group;
  for (int64_t r = group.first_row; r < rows; r += group.rows_apart) {
    const T* const from = x + r * columns;
    float largest = -INFINITY, sum = 0;
    for (int c = group.lane; c < columns; c += kThreads) largest = fmaxf(largest, widen(from[c]));
    largest = group.largest(largest);
    for (int c = group.lane; c < columns; c += kThreads) sum += expf(widen(from[c]) - largest);
    const float total = group.sum(sum), share = 1 / total, shift = logf(total);
    for (int c = group.lane; c < columns; c += kThreads) {
      const float centred = widen(from[c]) - largest;
      y[r * columns + c] = narrow<T>(log ? centred - shift : expf(centred) * share);
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const bool log = s.attrs.integer("log", 0) != 0;
  return make_over_rows(s, device,
                        [&device, log](auto tag, auto threads, unsigned blocks, int64_t rows,
                                       int columns, const KernelArgs& args) {
                          using T = typename decltype(tag)::type;
                          softmax_rows<T, threads.value><<<blocks, kRowThreads, 0, device.stream>>>(
                              args.inputs[0].as<T>(), args.outputs[0].as<T>(), rows, columns, log);
                        });
}

}  // namespace

extern const CudaKernel cuda_softmax{"softmax", make};

}  // namespace thimble
