// take_along: a thread for every element of the result, moved as it is.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/shape/along.cuh"

namespace thimble {
namespace {

template <class Unit>
__global__ void __launch_bounds__(kBlockThreads)
    take(const Unit* x, const int32_t* places, Unit* y, int64_t elements, int64_t count,
         int64_t width) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < elements; i += threads) {
    const int64_t place = places[i];
    y[i] = place >= 0 && place < width ? x[i / count * width + place] : Unit{0};
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (s.outputs[0].elements() == 0 || !is_moved(s.outputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t elements = args.outputs[0].elements();
    with_moved_unit(args.outputs[0].type.dtype, [&](auto tag) {
      using Unit = typename decltype(tag)::type;
      take<Unit><<<blocks_for(elements, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<Unit>(), args.inputs[1].as<int32_t>(), args.outputs[0].as<Unit>(),
          elements, args.inputs[1].type.shape[1], args.inputs[0].type.shape[1]);
    });
    check_launch("take_along");
  });
}

}  // namespace

extern const CudaKernel cuda_take_along{"take_along", make};

}  // namespace thimble
