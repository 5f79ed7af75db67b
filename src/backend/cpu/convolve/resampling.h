// resample and its gradient: a pixel at a time, its channels innermost.
#pragma once

#include "backend/cpu/rows.h"
#include "ops/convolve/resample_geometry.h"

namespace thimble {

// Rows [begin, end) of pixels of the result.
THIMBLE_INLINE void resample_rows(const KernelArgs& args, int64_t begin, int64_t end,
                                  bool backward) {
  const Shape& result = args.outputs[0].type.shape;
  const ResampleGeometry g =
      resample_geometry("resample", args.inputs[0].type.shape, result, *args.attrs, backward);
  const float* const from = args.inputs[0].as<const float>();
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = row / g.result_h, h = row % g.result_h;
    const int64_t top = g.down.first_source(h), bottom = g.down.end_source(h);
    for (int64_t w = 0; w < g.result_w; ++w) {
      float* __restrict to = args.outputs[0].as<float>() + g.result_at(n, h, w);
      if (!args.adds_into(0)) std::fill(to, to + g.channels, 0.0f);
      const int64_t left = g.across.first_source(w), right = g.across.end_source(w);
      for (int64_t i = top; i < bottom; ++i) {
        for (int64_t j = left; j < right; ++j) {
          const float weight = g.down.weight(h, i) * g.across.weight(w, j);
          const float* __restrict x = from + g.source_at(n, i, j);
          for (int64_t c = 0; c < g.channels; ++c) to[c] += weight * x[c];
        }
      }
    }
  }
}

// As CpuKernel::make.
template <RowLoop kLoop>
std::unique_ptr<Kernel> resampling(const Signature& s) {
  const Shape& y = s.outputs[0].shape;
  if (!all_f32(s) || y.elements() == 0) return nullptr;
  return std::make_unique<UnitKernel>(y[0] * y[1], 4 * y[2] * y[3], kLoop);
}

}  // namespace thimble
