// add_along: a thread for every element of the result looks through the places of its row, so that
// sums have one order, without atomics. Threads of a warp read the same places.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    add_up(const T* x, const int32_t* places, T* y, int64_t elements, int64_t count, int64_t width,
           bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < elements; i += threads) {
    const int64_t row = i / width, place = i - row * width;
    float sum = 0;
    for (int64_t at = row * count; at < (row + 1) * count; ++at) {
      if (places[at] == place) sum += widen(x[at]);
    }
    store(y + i, sum, add);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t elements = args.outputs[0].elements();
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      add_up<T><<<blocks_for(elements, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.inputs[1].as<int32_t>(), args.outputs[0].as<T>(), elements,
          args.inputs[1].type.shape[1], args.outputs[0].type.shape[1], args.adds_into(0));
    });
    check_launch("add_along");
  });
}

}  // namespace

extern const CudaKernel cuda_add_along{"add_along", make};

}  // namespace thimble
