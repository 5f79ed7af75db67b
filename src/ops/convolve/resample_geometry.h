// How images change their size, axis by axis: which inputs an output is made of, and how much of
// each. A gradient is the same walk from the other side. Shared by both ops and the kernels of all
// backends.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "graph/attrs.h"
#include "graph/op.h"

namespace thimble {

enum class Resampling : uint8_t {
  nearest,   // the input below
  bilinear,  // between the two nearest, pixels being squares
  corners,   // the same, pixels being points, so that first and last stay where they are
  average,   // the mean over as many equal parts as there are outputs
};

inline Resampling resampling_of(std::string_view op, const Attrs& attrs) {
  const std::string_view mode = attrs.text("mode", "");
  if (mode == "nearest") return Resampling::nearest;
  if (mode == "bilinear") return Resampling::bilinear;
  if (mode == "corners") return Resampling::corners;
  if (mode != "average") {
    user_error("[{}] knows nearest, bilinear, corners and average, not '{}'", op, mode);
  }
  return Resampling::average;
}

// One axis, of `in` numbers before and `out` after. Seen from an output, sources are the inputs it
// reads; seen from an input (`backward`), the outputs that read it. Both are ranges, since what an
// output reads moves one way only.
struct ResampleAxis {
  int64_t in, out;
  Resampling mode;
  bool backward;

  // The inputs of output o: [first, last], and the share of the last where there are two.
  struct Taps {
    int64_t first, last;
    float of_last;
  };
  constexpr Taps taps(int64_t o) const {
    if (mode == Resampling::nearest) return {o * in / out, o * in / out, 0};
    if (mode == Resampling::average) return {o * in / out, ((o + 1) * in + out - 1) / out - 1, 0};
    const float at =
        mode == Resampling::corners
            ? (out > 1 ? static_cast<float>(o) * static_cast<float>(in - 1) /
                             static_cast<float>(out - 1)
                       : 0.0f)
            : (static_cast<float>(o) + 0.5f) * static_cast<float>(in) / static_cast<float>(out) -
                  0.5f;
    if (at <= 0) return {0, 0, 0};
    const int64_t below = static_cast<int64_t>(at);
    if (below >= in - 1) return {in - 1, in - 1, 0};
    return {below, below + 1, at - static_cast<float>(below)};
  }
  constexpr float share(const Taps& taps, int64_t i) const {
    if (mode == Resampling::average) return 1.0f / static_cast<float>(taps.last - taps.first + 1);
    return taps.first == taps.last ? 1.0f : i == taps.last ? taps.of_last : 1 - taps.of_last;
  }
  // The first output that reads beyond input i, or, `past`, nothing but what lies beyond.
  constexpr int64_t reader(int64_t i, bool past) const {
    int64_t low = 0, high = out;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const Taps seen = taps(middle);
      if (past ? seen.first > i : seen.last >= i) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  constexpr int64_t first_source(int64_t at) const {
    return backward ? reader(at, false) : taps(at).first;
  }
  constexpr int64_t end_source(int64_t at) const {
    return backward ? reader(at, true) : taps(at).last + 1;
  }
  constexpr float weight(int64_t at, int64_t source) const {
    return backward ? share(taps(source), at) : share(taps(at), source);
  }
};

// Both axes of images [N,H,W,C], from `source` to `result`.
struct ResampleGeometry {
  ResampleAxis down, across;
  int64_t source_h, source_w, result_h, result_w, channels;

  constexpr int64_t source_at(int64_t n, int64_t h, int64_t w) const {
    return ((n * source_h + h) * source_w + w) * channels;
  }
  constexpr int64_t result_at(int64_t n, int64_t h, int64_t w) const {
    return ((n * result_h + h) * result_w + w) * channels;
  }
};

inline ResampleGeometry resample_geometry(std::string_view op, const Shape& source,
                                          const Shape& result, const Attrs& attrs, bool backward) {
  const Resampling mode = resampling_of(op, attrs);
  const auto axis = [&](int a) {
    return backward ? ResampleAxis{result[a], source[a], mode, true}
                    : ResampleAxis{source[a], result[a], mode, false};
  };
  return {axis(1), axis(2), source[1], source[2], result[1], result[2], source[3]};
}

}  // namespace thimble
