// The geometry shared by the pooling ops: square windows over channels-last images [N,H,W,C].
// attrs: kernel, stride (default: kernel), pad (default: 0).
#pragma once

#include "base/error.h"
#include "ops/reference.h"

namespace thimble {

struct PoolGeometry {
  int64_t batch, in_h, in_w, channels;
  int64_t out_h, out_w;
  int64_t kernel, stride, pad;

  Shape x() const { return {batch, in_h, in_w, channels}; }
  Shape y() const { return {batch, out_h, out_w, channels}; }
  int64_t x_at(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * in_h + h) * in_w + w) * channels + c;
  }
  int64_t y_at(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * out_h + h) * out_w + w) * channels + c;
  }
  double flops() const { return static_cast<double>(y().elements() * kernel * kernel); }
};

// Throws UserError naming `op` when the windows do not fit. The padding is at most half a window,
// so every window sees the image.
PoolGeometry pool_geometry(std::string_view op, const Shape& x, const Attrs& attrs);
// The same from the gradient dy and the attributes in_h and in_w, which dy alone does not tell.
PoolGeometry pool_backward_geometry(std::string_view op, const Shape& dy, const Attrs& attrs);
// The attributes of a pooling op's gradient.
Attrs pool_backward_attrs(const Shape& x, const Attrs& attrs);

// Calls body(n, h, w, c) for every element of an image batch.
template <class Body>
void for_each_pixel(const Shape& image, Body&& body) {
  for (int64_t n = 0; n < image[0]; ++n) {
    for (int64_t h = 0; h < image[1]; ++h) {
      for (int64_t w = 0; w < image[2]; ++w) {
        for (int64_t c = 0; c < image[3]; ++c) body(n, h, w, c);
      }
    }
  }
}

// Calls body(ih, iw, position) for every input that window (oh, ow) sees inside the image;
// position counts the places of the window, padding included, row by row.
template <class Body>
void for_each_in_window(const PoolGeometry& g, int64_t oh, int64_t ow, Body&& body) {
  for (int64_t kh = 0; kh < g.kernel; ++kh) {
    const int64_t ih = oh * g.stride - g.pad + kh;
    if (ih < 0 || ih >= g.in_h) continue;
    for (int64_t kw = 0; kw < g.kernel; ++kw) {
      const int64_t iw = ow * g.stride - g.pad + kw;
      if (iw < 0 || iw >= g.in_w) continue;
      body(ih, iw, kh * g.kernel + kw);
    }
  }
}

// Calls body(oh, ow, position) for every window that sees input (ih, iw), and where in it.
template <class Body>
void for_each_window(const PoolGeometry& g, int64_t ih, int64_t iw, Body&& body) {
  for (int64_t kh = 0; kh < g.kernel; ++kh) {
    const int64_t down = ih + g.pad - kh;
    if (down < 0 || down % g.stride != 0 || down / g.stride >= g.out_h) continue;
    for (int64_t kw = 0; kw < g.kernel; ++kw) {
      const int64_t right = iw + g.pad - kw;
      if (right < 0 || right % g.stride != 0 || right / g.stride >= g.out_w) continue;
      body(down / g.stride, right / g.stride, kh * g.kernel + kw);
    }
  }
}

// dx of a pooling op: of each window that sees an element, and for which takes(element of y, position)
// holds, one part in `parts` of its dy. Gathers, so that nothing is summed in a stored
// dtype. dy is the last input.
template <class Takes>
void run_pool_backward(const KernelArgs& args, const PoolGeometry& g, int64_t parts,
                       Takes&& takes) {
  with_float_type(args.outputs[0].type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* dy = args.inputs.back().as<T>();
    T* dx = args.outputs[0].as<T>();
    const auto share = 1 / static_cast<Accumulator<T>>(parts);
    for_each_pixel(g.x(), [&](int64_t n, int64_t ih, int64_t iw, int64_t c) {
      Accumulator<T> sum = 0;
      for_each_window(g, ih, iw, [&](int64_t oh, int64_t ow, int64_t position) {
        const int64_t at = g.y_at(n, oh, ow, c);
        if (takes(at, position)) sum += widen(dy[at]);
      });
      store(dx, g.x_at(n, ih, iw, c), sum * share, args.adds_into(0));
    });
  });
}

Work pool_work(const Signature& s);
Work pool_backward_work(const Signature& s);
std::vector<Sample> pool_samples();
// `indexed`: with the places of maxima in front of dy.
std::vector<Sample> pool_backward_samples(bool indexed);

// The cases all pooling ops are checked on: overlapping, padded, disjoint and ragged windows.
struct PoolCase {
  Shape x;
  int64_t kernel, stride, pad;
  Attrs attrs() const { return {{"kernel", kernel}, {"stride", stride}, {"pad", pad}}; }
};
const std::vector<PoolCase>& pool_cases();

}  // namespace thimble
