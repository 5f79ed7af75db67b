// Shared by dynamic_conv, light_conv and their gradients: depthwise convolutions over the time axis
// of x [N,T,C]. Kernels are softmaxed over their K taps and shared by the C / H channels of a head.
// In dynamic_conv every position has kernels of its own, w [N,T,H*K]; in light_conv all have the
// same, w [H,K].
//   p = softmax(w), then DropConnect: taps zeroed at random, the others scaled by 1 / (1 - dropout)
//   y[n,t,c] = sum over k of p[n,t,head of c,k] * x[n, t + k - left, c]
// left is K - 1 if causal, else (K - 1) / 2. Positions outside of a row count as 0, and so do those
// behind its length. Inputs: x, w (and dy, of gradients), then lengths i32 [N] if attr padded, then
// rng i64 [3] if attr dropout > 0. attrs heads, kernel, causal (0), padded (0), dropout (0), stream
// (as of the op dropout). Taps of w are the elements of the random stream.
#pragma once

#include <algorithm>

#include "graph/op.h"

namespace thimble {

struct TimeConv {
  int64_t batch, steps, channels, heads, kernel;
  int64_t left;  // taps before the position itself
  bool shared;   // kernels are the same at all positions
  bool padded;
  double dropout;
  int64_t stream;

  TimeConv(const Shape& x, bool shared_kernels, const Attrs& attrs)
      : batch(x[0]),
        steps(x[1]),
        channels(x[2]),
        heads(attrs.integer("heads")),
        kernel(attrs.integer("kernel")),
        left(attrs.integer("causal", 0) != 0 ? kernel - 1 : (kernel - 1) / 2),
        shared(shared_kernels),
        padded(attrs.integer("padded", 0) != 0),
        dropout(attrs.real("dropout", 0)),
        stream(attrs.integer("stream", 0)) {}

  int64_t head_channels() const { return channels / heads; }
  Shape kernels() const {
    if (shared) return {heads, kernel};
    return {batch, steps, heads * kernel};
  }
  // The first tap of a position's and head's kernel in w.
  int64_t kernel_at(int64_t n, int64_t t, int64_t head) const {
    return ((shared ? 0 : (n * steps + t) * heads) + head) * kernel;
  }
  // Multiplications and additions, of one pass over all taps.
  double flops() const {
    return 2.0 * static_cast<double>(batch * steps) * static_cast<double>(channels * kernel);
  }
};

// The inputs of a call behind x, w and dy; null where there are none.
struct TimeConvExtras {
  const int32_t* lengths = nullptr;
  const int64_t* rng = nullptr;

  TimeConvExtras(const TimeConv& conv, std::span<const TensorRef> inputs, size_t first) {
    if (conv.padded) lengths = inputs[first++].as<int32_t>();
    if (conv.dropout > 0) rng = inputs[first].as<int64_t>();
  }
  // How many positions of row n count.
  int64_t length(const TimeConv& conv, int64_t n) const {
    if (lengths == nullptr) return conv.steps;
    return std::clamp<int64_t>(lengths[n], 0, conv.steps);
  }
};

}  // namespace thimble
