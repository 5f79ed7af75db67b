// Shared by resample and its gradient: sums over what a pixel is made of.
#pragma once

#include "ops/convolve/resample_geometry.h"
#include "ops/shape/strided.h"

namespace thimble {

inline std::vector<TensorType> infer_resample(std::string_view op,
                                              std::span<const TensorType> inputs,
                                              const Attrs& attrs) {
  check_one_floating(op, inputs);
  resampling_of(op, attrs);
  const Shape& x = inputs[0].shape;
  const int64_t h = attrs.integer("h"), w = attrs.integer("w");
  user_check(x.rank() == 4 && x[1] > 0 && x[2] > 0, "[{}] wants images [N,H,W,C], got {}", op,
             to_string(x));
  constexpr int64_t kMost = 1 << 24;  // counts as a float
  user_check(h >= 1 && w >= 1 && h <= kMost && w <= kMost && x[1] <= kMost && x[2] <= kMost,
             "[{}] makes no image of {} by {}", op, h, w);
  return {{{x[0], h, w, x[3]}, inputs[0].dtype}};
}

inline void run_resample(std::string_view op, const KernelArgs& args, bool backward) {
  const Shape& result = args.outputs[0].type.shape;
  const ResampleGeometry g =
      resample_geometry(op, args.inputs[0].type.shape, result, *args.attrs, backward);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* from = args.inputs[0].as<T>();
    T* to = args.outputs[0].as<T>();
    const auto one = [&](int64_t n, int64_t h, int64_t w, int64_t c) {
      Accumulator<T> sum = 0;
      for (int64_t i = g.down.first_source(h); i < g.down.end_source(h); ++i) {
        for (int64_t j = g.across.first_source(w); j < g.across.end_source(w); ++j) {
          sum += widen(from[g.source_at(n, i, j) + c]) *
                 static_cast<Accumulator<T>>(g.down.weight(h, i) * g.across.weight(w, j));
        }
      }
      store(to, g.result_at(n, h, w) + c, sum, args.adds_into(0));
    };
    for (int64_t n = 0; n < result[0]; ++n) {
      for (int64_t h = 0; h < result[1]; ++h) {
        for (int64_t w = 0; w < result[2]; ++w) {
          for (int64_t c = 0; c < result[3]; ++c) one(n, h, w, c);
        }
      }
    }
  });
}

inline Work resample_work(const Signature& s) {
  return {8 * std::max(count_of(s.inputs[0]), count_of(s.outputs[0])), 0};
}

// Larger and smaller, by whole factors and by others.
inline std::vector<Sample> resample_samples(bool backward) {
  std::vector<Sample> result;
  for (const char* mode : {"nearest", "bilinear", "corners", "average"}) {
    for (const auto& [x, h, w] : {std::tuple{Shape{2, 3, 4, 8}, int64_t{6}, int64_t{12}},
                                  {Shape{1, 7, 5, 3}, 3, 4},
                                  {Shape{2, 1, 1, 16}, 4, 3},
                                  {Shape{2, 5, 5, 5}, 1, 1}}) {
      Sample sample = {.inputs = {{x}}, .attrs = {{"h", h}, {"w", w}, {"mode", std::string(mode)}}};
      if (backward) {
        sample.inputs = {{{x[0], h, w, x[3]}}};
        sample.attrs.set("h", x[1]).set("w", x[2]);
      } else {
        sample.differentiate = {0};
      }
      result.push_back(sample);
    }
  }
  result.push_back(result.front());
  result.back().accumulate = 1;
  return result;
}

}  // namespace thimble
