// max_pool_backward: each input gathers from the windows that see it, so nothing is written twice.
#include "backend/cpu/convolve/pooling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const Pooling g = pooling_of(args.outputs[0].type.shape, args.inputs[1].type.shape, *args.attrs);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t image = row / g.in_h * g.out_h * g.out_w * g.channels;
    const uint8_t* indices = args.inputs[0].as<const uint8_t>() + image;
    const float* gradients = args.inputs[1].as<const float>() + image;
    for (int64_t iw = 0; iw < g.in_w; ++iw) {
      float* __restrict dx = args.outputs[0].as<float>() + (row * g.in_w + iw) * g.channels;
      if (!args.adds_into(0)) std::fill(dx, dx + g.channels, 0.0f);
      for_each_seeing(g, row % g.in_h, iw, [&](int64_t output, int64_t position) {
        const uint8_t* __restrict index = indices + output;
        const float* __restrict dy = gradients + output;
        for (int64_t c = 0; c < g.channels; ++c) dx[c] += index[c] == position ? dy[c] : 0;
      });
    }
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const bool fits = s.inputs[1].dtype == DType::f32 && s.inputs[1].elements() > 0;
  return fits ? make_pooling(s.outputs[0].shape, s.attrs, loop) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_max_pool_backward;
const CpuKernel cpu_max_pool_backward{"max_pool_backward", make};

}  // namespace thimble
