// cumprod: a thread per row.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    multiply_up(const T* x, T* y, int64_t rows, int64_t width) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t r = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; r < rows; r += threads) {
    float product = 1;
    for (int64_t i = r * width; i < (r + 1) * width; ++i) {
      product *= widen(x[i]);
      store(y + i, product, false);
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t width = args.outputs[0].type.shape.back();
    const int64_t rows = args.outputs[0].elements() / width;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      multiply_up<T><<<blocks_for(rows, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.outputs[0].as<T>(), rows, width);
    });
    check_launch("cumprod");
  });
}

}  // namespace

extern const CudaKernel cuda_cumprod{"cumprod", make};

}  // namespace thimble
