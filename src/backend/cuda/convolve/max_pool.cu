// max_pool: of equal maxima the first wins; a NaN wins over everything.
#include "backend/cuda/convolve/pool.cuh"

namespace thimble {
namespace {

template <class T>
struct Largest {
  Pool pool;
  const T* x;
  T* y;
  uint8_t* index;

  template <int kWide>
  __device__ void operator()(std::integral_constant<int, kWide>, int n, int oh, int ow,
                             int c) const {
    Vec<T, kWide> best;
    Vec<uint8_t, kWide> place;
    bool first = true;
    pool.for_each_in_window(oh, ow, [&](int ih, int iw, int position) {
      const Vec<T, kWide> in = *reinterpret_cast<const Vec<T, kWide>*>(x + pool.x_at(n, ih, iw, c));
#pragma unroll
      for (int e = 0; e < kWide; ++e) {
        const float value = widen(in.at[e]);
        if (!first && !(value > widen(best.at[e])) && !isnan(value)) continue;
        best.at[e] = in.at[e];
        place.at[e] = static_cast<uint8_t>(position);
      }
      first = false;
    });
    const int64_t at = pool.y_at(n, oh, ow, c);
    *reinterpret_cast<Vec<T, kWide>*>(y + at) = best;
    *reinterpret_cast<Vec<uint8_t, kWide>*>(index + at) = place;
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return make_pooling(s, device, s.inputs[0], s.outputs[0],
                      [](auto tag, const Pool& pool, const KernelArgs& args) {
                        using T = typename decltype(tag)::type;
                        return Largest<T>{pool, args.inputs[0].as<T>(), args.outputs[0].as<T>(),
                                          args.outputs[1].as<uint8_t>()};
                      });
}

}  // namespace

extern const CudaKernel cuda_max_pool{"max_pool", make};

}  // namespace thimble
