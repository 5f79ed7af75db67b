// The numbers of sinusoid, for the kernels of every backend.
#pragma once

#include <cmath>

#include "graph/op.h"

namespace thimble {

struct Sinusoid {
  int64_t width, half, pad;

  explicit Sinusoid(const Attrs& attrs)
      : width(attrs.integer("width")), half(width / 2), pad(attrs.integer("pad", -1)) {}

  double frequency(int64_t c) const {
    return std::exp(-static_cast<double>(c) * std::log(10000.0) / static_cast<double>(half - 1));
  }
  // Column c of the token at `index` of its row; the last of an odd width is 0.
  double at(int64_t index, int64_t c) const {
    const auto position = static_cast<double>(pad + 1 + index);
    if (c >= 2 * half) return 0;
    return c < half ? std::sin(position * frequency(c)) : std::cos(position * frequency(c - half));
  }
};

}  // namespace thimble
