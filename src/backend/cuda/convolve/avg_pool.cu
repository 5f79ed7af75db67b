// avg_pool: padding counts as zeros.
#include "backend/cuda/convolve/pool.cuh"

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
    pool.for_each_in_window(
        oh, ow, [&](int ih, int iw, int) { add_wide(x + pool.x_at(n, ih, iw, c), sum); });
    const float share = 1 / static_cast<float>(pool.kernel * pool.kernel);
#pragma unroll
    for (int e = 0; e < kWide; ++e) sum[e] *= share;
    store_wide<T, kWide>(y + pool.y_at(n, oh, ow, c), sum, false);
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_pooling(s, device, s.inputs[0], s.outputs[0],
                      [](auto tag, const Pool& pool, const KernelArgs& args) {
                        using T = typename decltype(tag)::type;
                        return Mean<T>{pool, args.inputs[0].as<T>(), args.outputs[0].as<T>()};
                      });
}

}  // namespace

extern const CudaKernel cuda_avg_pool{"avg_pool", make};

}  // namespace thimble
