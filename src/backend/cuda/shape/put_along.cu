// put_along: the base is copied, then a thread for every place writes unless a later one of its row
// names the same place.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/shape/along.cuh"

namespace thimble {
namespace {

template <class Unit>
__global__ void __launch_bounds__(kBlockThreads)
    put_last(const int32_t* places, const Unit* x, Unit* y, int64_t elements, int64_t count,
             int64_t width) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < elements; i += threads) {
    const int64_t row = i / count, end = (row + 1) * count;
    const int32_t place = places[i];
    if (place < 0 || place >= width) continue;
    int64_t later = i + 1;
    while (later < end && places[later] != place) ++later;
    if (later == end) y[row * width + place] = x[i];
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (s.outputs[0].elements() == 0 || !is_moved(s.outputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const TensorRef &base = args.inputs[0], &y = args.outputs[0];
    if (y.data != base.data) {
      check(cudaMemcpyAsync(y.data, base.data, static_cast<size_t>(y.type.bytes().count),
                            cudaMemcpyDeviceToDevice, device.stream),
            "copying the base of put_along");
    }
    const int64_t elements = args.inputs[1].elements();
    if (elements == 0) return;
    with_moved_unit(y.type.dtype, [&](auto tag) {
      using Unit = typename decltype(tag)::type;
      put_last<Unit><<<blocks_for(elements, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[1].as<int32_t>(), args.inputs[2].as<Unit>(), y.as<Unit>(), elements,
          args.inputs[1].type.shape[1], y.type.shape[1]);
    });
    check_launch("put_along");
  });
}

}  // namespace

extern const CudaKernel cuda_put_along{"put_along", make};

}  // namespace thimble
