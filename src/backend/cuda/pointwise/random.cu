// random: four elements per draw of the generator, as base/number/random_stream.h lays them out.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "ops/pointwise/random_numbers.h"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    draw(const int64_t* rng, T* y, int64_t count, int64_t stream, Draw kind) {
  const RandomStream random(rng, stream);
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t block = thread; 4 * block < count; block += threads) {
    float numbers[4];
    draw_numbers(kind, random.words(block), numbers);
    for (int64_t i = 4 * block; i < count && i < 4 * block + 4; ++i) {
      store(y + i, numbers[i - 4 * block], false);
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype) || s.outputs[0].elements() == 0) return nullptr;
  Draw kind = Draw::uniform;
  if (!parse_draw(s.attrs.text("kind", ""), &kind)) return nullptr;
  const int64_t stream = s.attrs.integer("stream");
  return own_kernel([&device, kind, stream](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      draw<T><<<blocks_for((count + 3) / 4, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<int64_t>(), args.outputs[0].as<T>(), count, stream, kind);
    });
    check_launch("random");
  });
}

}  // namespace

extern const CudaKernel cuda_random{"random", make};

}  // namespace thimble
