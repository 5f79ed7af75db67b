// whole: one element a thread at a time. The conversion keeps to the ends of i32, and makes 0 of what is no number.
#include "backend/cuda/pointwise/eights.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void whole_elements(const T* from, int32_t* to, int64_t count) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) {
    to[i] = __float2int_rn(widen(from[i]));
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto from) {
      using From = typename decltype(from)::type;
      whole_elements<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<From>(), args.outputs[0].as<int32_t>(), count);
    });
    check_launch("whole");
  });
}

}  // namespace

extern const CudaKernel cuda_whole{"whole", make};

}  // namespace thimble
