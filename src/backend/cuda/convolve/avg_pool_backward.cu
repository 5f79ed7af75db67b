// avg_pool_backward: every input gathers from the windows that see it.
#include "backend/cuda/convolve/pool.cuh"

namespace thimble {
namespace {

template <class T>
struct Spread {
  Pool pool;
  const T* dy;
  T* dx;
  bool add;

  template <int kWide>
  __device__ void operator()(std::integral_constant<int, kWide>, int n, int ih, int iw,
                             int c) const {
    float sum[kWide] = {};
    pool.for_each_window(ih, iw,
                         [&](int oh, int ow, int) { add_wide(dy + pool.y_at(n, oh, ow, c), sum); });
    const float share = 1 / static_cast<float>(pool.kernel * pool.kernel);
#pragma unroll
    for (int e = 0; e < kWide; ++e) sum[e] *= share;
    store_wide<T, kWide>(dx + pool.x_at(n, ih, iw, c), sum, add);
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_pooling(
      s, device, s.outputs[0], s.inputs[0], [](auto tag, const Pool& pool, const KernelArgs& args) {
        using T = typename decltype(tag)::type;
        return Spread<T>{pool, args.inputs[0].as<T>(), args.outputs[0].as<T>(), args.adds_into(0)};
      });
}

}  // namespace

extern const CudaKernel cuda_avg_pool_backward{"avg_pool_backward", make};

}  // namespace thimble
