// write_rows: a thread per number that is written.
#include "backend/cuda/pointwise/elementwise.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    write_rows(T* cache, const T* rows, const int32_t* first, int64_t places, int64_t positions,
               int64_t width, int64_t count) {
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < count; i += gridDim.x * int64_t{blockDim.x}) {
    const int64_t row = i / width, n = row / positions;
    const int64_t place = first[n] + row % positions;
    if (place >= 0 && place < places) cache[(n * places + place) * width + i % width] = rows[i];
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const Shape cache = s.inputs[0].shape, rows = s.inputs[1].shape;
  return own_kernel([&device, cache, rows](const KernelArgs& args) {
    const int64_t count = args.inputs[1].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      write_rows<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
          args.outputs[0].as<T>(), args.inputs[1].as<T>(), args.inputs[2].as<int32_t>(), cache[1],
          rows[1], cache[2], count);
    });
    check_launch("write_rows");
  });
}

}  // namespace

extern const CudaKernel cuda_write_rows{"write_rows", make};

}  // namespace thimble
