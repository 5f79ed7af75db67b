// max_pool_backward: every input gathers from the windows that chose it.
#include "backend/cuda/convolve/pool.cuh"

namespace thimble {
namespace {

template <class T>
struct Chosen {
  Pool pool;
  const uint8_t* index;
  const T* dy;
  T* dx;
  bool add;

  template <int kWide>
  __device__ void operator()(std::integral_constant<int, kWide>, int n, int ih, int iw,
                             int c) const {
    float sum[kWide] = {};
    pool.for_each_window(ih, iw, [&](int oh, int ow, int position) {
      const int64_t at = pool.y_at(n, oh, ow, c);
      const Vec<uint8_t, kWide> place = *reinterpret_cast<const Vec<uint8_t, kWide>*>(index + at);
      const Vec<T, kWide> in = *reinterpret_cast<const Vec<T, kWide>*>(dy + at);
#pragma unroll
      for (int e = 0; e < kWide; ++e) {
        if (place.at[e] == position) sum[e] += widen(in.at[e]);
      }
    });
    store_wide<T, kWide>(dx + pool.x_at(n, ih, iw, c), sum, add);
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_pooling(s, device, s.outputs[0], s.inputs[1],
                      [](auto tag, const Pool& pool, const KernelArgs& args) {
                        using T = typename decltype(tag)::type;
                        return Chosen<T>{pool, args.inputs[0].as<uint8_t>(), args.inputs[1].as<T>(),
                                         args.outputs[0].as<T>(), args.adds_into(0)};
                      });
}

}  // namespace

extern const CudaKernel cuda_max_pool_backward{"max_pool_backward", make};

}  // namespace thimble
