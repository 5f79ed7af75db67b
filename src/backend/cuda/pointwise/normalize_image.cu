// normalize_image: 16 bytes per thread and turn; the channel is found once for them.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {
namespace {

constexpr int kBytes = 16;

template <class T>
__global__ void normalize(const uint8_t* x, const float* mean, const float* inv_std, T* y,
                          int64_t count, int channels) {
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t first = thread * kBytes; first < count; first += threads * kBytes) {
    int c = static_cast<int>(first % channels);
    if (first + kBytes > count) {
      for (int64_t i = first; i < count; ++i) {
        y[i] = narrow<T>((static_cast<float>(x[i]) - mean[c]) * inv_std[c]);
        c = c + 1 == channels ? 0 : c + 1;
      }
      return;
    }
    const Vec<uint8_t, kBytes> in = *reinterpret_cast<const Vec<uint8_t, kBytes>*>(x + first);
#pragma unroll
    for (int pack = 0; pack < kBytes / 4; ++pack) {
      Vec<T, 4> out;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        out.at[e] = narrow<T>((static_cast<float>(in.at[4 * pack + e]) - mean[c]) * inv_std[c]);
        c = c + 1 == channels ? 0 : c + 1;
      }
      *reinterpret_cast<Vec<T, 4>*>(y + first + 4 * pack) = out;
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  return own_kernel([&device](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const unsigned blocks = blocks_for((count + kBytes - 1) / kBytes, device);
      normalize<T><<<blocks, kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<uint8_t>(), args.inputs[1].as<float>(), args.inputs[2].as<float>(),
          args.outputs[0].as<T>(), count, static_cast<int>(args.inputs[0].type.shape[3]));
    });
    check_launch("normalize_image");
  });
}

}  // namespace

extern const CudaKernel cuda_normalize_image{"normalize_image", make};

}  // namespace thimble
