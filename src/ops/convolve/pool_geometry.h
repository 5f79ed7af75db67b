// The geometry shared by the pooling ops: square windows over channels-last images [N,H,W,C].
// attrs: kernel, stride (default: kernel), pad (default: 0).
#pragma once

#include "ops/convolve/windows.h"
#include "ops/reference.h"

namespace thimble {

struct PoolGeometry : Windows {
  int64_t batch, channels;

  Shape x() const { return {batch, in_h, in_w, channels}; }
  Shape y() const { return {batch, out_h, out_w, channels}; }
  int64_t x_at(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * in_h + h) * in_w + w) * channels + c;
  }
  int64_t y_at(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * out_h + h) * out_w + w) * channels + c;
  }
  int64_t window() const { return kernel_h * kernel_w; }
  // A place of a window, padding included, row by row.
  int64_t place(int64_t kh, int64_t kw) const { return kh * kernel_w + kw; }
  double flops() const { return static_cast<double>(y().elements() * window()); }
};

// Of the images before and after pooling, unchecked.
PoolGeometry pool_geometry(const Shape& x, const Shape& y, const Attrs& attrs);
// Throws UserError naming `op` when the windows do not fit. The padding is at most half a window,
// so every window sees the image.
PoolGeometry pool_geometry(std::string_view op, const Shape& x, const Attrs& attrs);
// The same from the gradient dy and the attributes in_h and in_w, which dy alone does not tell.
PoolGeometry pool_backward_geometry(std::string_view op, const Shape& dy, const Attrs& attrs);
// The attributes of a pooling op's gradient.
Attrs pool_backward_attrs(const Shape& x, const Attrs& attrs);

// dx of a pooling op: of each window that sees an element, and for which takes(element of y, place)
// holds, one part in `parts` of its dy. Gathers, so that nothing is summed in a stored
// dtype. dy is the last input.
template <class Takes>
void run_pool_backward(const KernelArgs& args, const PoolGeometry& g, int64_t parts,
                       Takes&& takes) {
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* dy = args.inputs.back().as<T>();
    T* dx = args.outputs[0].as<T>();
    const auto share = 1 / static_cast<Accumulator<T>>(parts);
    for_each_pixel(g.x(), [&](int64_t n, int64_t ih, int64_t iw, int64_t c) {
      Accumulator<T> sum = 0;
      g.for_each_seeing(ih, iw, [&](int64_t oh, int64_t ow, int64_t kh, int64_t kw) {
        const int64_t at = g.y_at(n, oh, ow, c);
        if (takes(at, g.place(kh, kw))) sum += widen(dy[at]);
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
