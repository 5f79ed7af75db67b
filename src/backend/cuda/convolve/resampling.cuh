// resample and its gradient: a thread has one pixel's adjacent channels.
#pragma once

#include "backend/cuda/convolve/pool.cuh"
#include "ops/convolve/resample_geometry.h"

namespace thimble {

template <class T>
struct ResamplePixel {
  ResampleGeometry g;
  const T* from;
  T* to;
  bool add;

  template <int kWide>
  __device__ void operator()(std::integral_constant<int, kWide>, int n, int h, int w, int c) const {
    float sum[kWide] = {};
    const int64_t left = g.across.first_source(w), right = g.across.end_source(w);
    for (int64_t i = g.down.first_source(h); i < g.down.end_source(h); ++i) {
      for (int64_t j = left; j < right; ++j) {
        float one[kWide] = {};
        add_wide(from + g.source_at(n, i, j) + c, one);
        const float weight = g.down.weight(h, i) * g.across.weight(w, j);
#pragma unroll
        for (int e = 0; e < kWide; ++e) sum[e] += weight * one[e];
      }
    }
    store_wide<T, kWide>(to + g.result_at(n, h, w) + c, sum, add);
  }
};

inline std::unique_ptr<Kernel> make_resampling(const Signature& s, CudaDevice& device,
                                               bool backward) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const Shape& y = s.outputs[0].shape;
  const ResampleGeometry g = resample_geometry("resample", s.inputs[0].shape, y, s.attrs, backward);
  return own_kernel([&device, g](const KernelArgs& args) {
    const TensorType& out = args.outputs[0].type;
    with_device_type(out.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      launch_for_pixels(
          out.shape,
          ResamplePixel<T>{g, args.inputs[0].as<T>(), args.outputs[0].as<T>(), args.adds_into(0)},
          device);
    });
    check_launch("resample");
  });
}

}  // namespace thimble
