// softmax_backward: a warp or a block per row. dx may be y or dy: a row is summed by all before any
// of it is written.
#include "backend/cuda/row_group.cuh"

namespace thimble {
namespace {

template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    softmax_gradients(const T* y, const T* dy, T* dx, int64_t rows, int columns) {
  const RowGroup<kThreads> group;
  for (int64_t r = group.first_row; r < rows; r += group.rows_apart) {
    float sum = 0;
    for (int c = group.lane; c < columns; c += kThreads) {
      sum += widen(y[r * columns + c]) * widen(dy[r * columns + c]);
    }
    sum = group.sum(sum);
    for (int c = group.lane; c < columns; c += kThreads) {
      const int64_t at = r * columns + c;
      dx[at] = narrow<T>(widen(y[at]) * (widen(dy[at]) - sum));
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const Shape& shape = args.inputs[0].type.shape;
    const int64_t columns = shape.back(), rows = shape.product(0, shape.rank() - 1);
    if (rows * columns == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_row_group(columns, [&](auto threads) {
        softmax_gradients<T, threads.value>
            <<<row_blocks(rows, columns, device), kRowThreads, 0, device.stream>>>(
                args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(), rows,
                static_cast<int>(columns));
      });
    });
    check_launch("softmax_backward");
  });
}

}  // namespace

extern const CudaKernel cuda_softmax_backward;
const CudaKernel cuda_softmax_backward{"softmax_backward", make};

}  // namespace thimble
