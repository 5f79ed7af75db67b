// dropout: four elements per draw of the generator, as base/number/random_stream.h lays them out.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"
#include "base/number/philox.h"

namespace thimble {
namespace {

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    drop(const T* x, const int64_t* rng, T* y, int64_t count, uint32_t stream, float p,
         float scale) {
  const PhiloxKey key = philox_key(static_cast<uint64_t>(rng[0]));
  const uint32_t step = static_cast<uint32_t>(rng[1]), microbatch = static_cast<uint32_t>(rng[2]);
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t block = thread; 4 * block < count; block += threads) {
    const PhiloxCounter words =
        philox({static_cast<uint32_t>(block), stream, step, microbatch}, key);
    const auto dropped = [&](T value, size_t e) {
      return narrow<T>(uniform_from(words[e]) >= p ? widen(value) * scale : 0);
    };
    if (4 * block + 4 <= count) {
      const Vec<T, 4> in = reinterpret_cast<const Vec<T, 4>*>(x)[block];
      Vec<T, 4> out;
#pragma unroll
      for (size_t e = 0; e < 4; ++e) out.at[e] = dropped(in.at[e], e);
      reinterpret_cast<Vec<T, 4>*>(y)[block] = out;
    } else {
      for (int64_t i = 4 * block; i < count; ++i) {
        y[i] = dropped(x[i], static_cast<size_t>(i - 4 * block));
      }
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const double p = s.attrs.real("p");
  const uint32_t stream = static_cast<uint32_t>(s.attrs.integer("stream"));
  return own_kernel([&device, p, stream](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      drop<<<blocks_for((count + 3) / 4, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.inputs[1].as<int64_t>(), args.outputs[0].as<T>(), count,
          stream, static_cast<float>(p), static_cast<float>(1 / (1 - p)));
    });
    check_launch("dropout");
  });
}

}  // namespace

extern const CudaKernel cuda_dropout{"dropout", make};

}  // namespace thimble
