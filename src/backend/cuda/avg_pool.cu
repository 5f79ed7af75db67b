// avg_pool: padding counts as zeros.
#include "backend/cuda/pool.cuh"

namespace thimble {
namespace {

template <class T>
struct Mean {
  Pool pool;
  const T* x;
  T* y;

  template <int kWide>
  __device__ void operator()(std::integral_constant<int, kWide>, int n, int oh, int ow,
                             int c) const {
    float sum[kWide] = {};
    pool.for_each_in_window(oh, ow, [&](int ih, int iw, int) {
      const Vec<T, kWide> in =
          *reinterpret_cast<const Vec<T, kWide>*>(x + pool.x_at(n, ih, iw, c));
#pragma unroll
      for (int e = 0; e < kWide; ++e) sum[e] += widen(in.at[e]);
    });
    const float share = 1 / static_cast<float>(pool.kernel * pool.kernel);
#pragma unroll
    for (int e = 0; e < kWide; ++e) sum[e] *= share;
    store_wide<T, kWide>(y + pool.y_at(n, oh, ow, c), sum, false);
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const Pool pool(s.inputs[0].shape, s.outputs[0].shape, s.attrs);
  return own_kernel([&device, pool](const KernelArgs& args) {
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      launch_for_pixels(args.outputs[0].type.shape,
                        Mean<T>{pool, args.inputs[0].as<T>(), args.outputs[0].as<T>()}, device);
    });
    check_launch("avg_pool");
  });
}

}  // namespace

extern const CudaKernel cuda_avg_pool;
const CudaKernel cuda_avg_pool{"avg_pool", make};

}  // namespace thimble
