// cumprod_backward: a thread per row, forwards for the products before each element, which lie in
// scratch, then backwards. dx may be x or dy.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    product_gradients(const T* x, const T* dy, T* dx, float* before, int64_t rows, int64_t width,
                      bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t r = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; r < rows; r += threads) {
    const int64_t begin = r * width;
    float product = 1;
    for (int64_t i = begin; i < begin + width; ++i) {
      before[i] = product;
      product *= widen(x[i]);
    }
    float sum = 0, next = 0;
    for (int64_t i = begin + width; i-- > begin;) {
      sum = widen(dy[i]) + next * sum;
      next = widen(x[i]);
      store(dx + i, before[i] * sum, add);
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  const Bytes scratch = Bytes(s.outputs[0].elements() * int64_t{sizeof(float)});
  return own_kernel(
      [&device](const KernelArgs& args) {
        const int64_t width = args.outputs[0].type.shape.back();
        const int64_t rows = args.outputs[0].elements() / width;
        with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          product_gradients<T><<<blocks_for(rows, device), kBlockThreads, 0, device.stream>>>(
              args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(),
              reinterpret_cast<float*>(args.workspace), rows, width, args.adds_into(0));
        });
        check_launch("cumprod_backward");
      },
      scratch);
}

}  // namespace

extern const CudaKernel cuda_cumprod_backward{"cumprod_backward", make};

}  // namespace thimble
