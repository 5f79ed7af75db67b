// Pooling over channels-last images: what the four pooling kernels share. A thread has one pixel's
// adjacent channels.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {

struct Pool {
  int in_h, in_w, out_h, out_w, channels;
  int kernel, stride, pad;

  // REQUIRES: x and y are the images before and after pooling.
  Pool(const Shape& x, const Shape& y, const Attrs& attrs)
      : in_h(static_cast<int>(x[1])),
        in_w(static_cast<int>(x[2])),
        out_h(static_cast<int>(y[1])),
        out_w(static_cast<int>(y[2])),
        channels(static_cast<int>(x[3])),
        kernel(static_cast<int>(attrs.integer("kernel"))),
        stride(static_cast<int>(attrs.integer("stride", kernel))),
        pad(static_cast<int>(attrs.integer("pad", 0))) {}

  __device__ int64_t x_at(int64_t n, int h, int w, int c) const {
    return ((n * in_h + h) * in_w + w) * channels + c;
  }
  __device__ int64_t y_at(int64_t n, int h, int w, int c) const {
    return ((n * out_h + h) * out_w + w) * channels + c;
  }

  // Calls body(ih, iw, position) for what window (oh, ow) sees of the image, row by row.
  template <class Body>
  __device__ void for_each_in_window(int oh, int ow, const Body& body) const {
    const int top = oh * stride - pad, left = ow * stride - pad;
    for (int kh = max(0, -top); kh < min(kernel, in_h - top); ++kh) {
      for (int kw = max(0, -left); kw < min(kernel, in_w - left); ++kw) {
        body(top + kh, left + kw, kh * kernel + kw);
      }
    }
  }

  // Calls body(oh, ow, position) for every window that sees (ih, iw), and where in it.
  template <class Body>
  __device__ void for_each_window(int ih, int iw, const Body& body) const {
    const int down = ih + pad, right = iw + pad;
    const int first_h = down < kernel ? 0 : (down - kernel) / stride + 1;
    const int first_w = right < kernel ? 0 : (right - kernel) / stride + 1;
    for (int oh = first_h; oh <= min(out_h - 1, down / stride); ++oh) {
      for (int ow = first_w; ow <= min(out_w - 1, right / stride); ++ow) {
        body(oh, ow, (down - oh * stride) * kernel + right - ow * stride);
      }
    }
  }
};

// Calls map(n, h, w, c) for every pixel of [N, height, width] images and every kWide-th channel.
template <int kWide, class Map>
__global__ void __launch_bounds__(kBlockThreads)
    for_pixels(unsigned count, unsigned height, unsigned width, unsigned channels, Map map) {
  const unsigned packs = channels / kWide, threads = gridDim.x * blockDim.x;
  for (uint64_t at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads) {
    const unsigned i = static_cast<unsigned>(at);
    const unsigned pixel = i / packs, line = pixel / width, n = line / height;
    map(std::integral_constant<int, kWide>{}, static_cast<int>(n),
        static_cast<int>(line - n * height), static_cast<int>(pixel - line * width),
        static_cast<int>((i - pixel * packs) * kWide));
  }
}

// sum += the kWide numbers at `from`.
template <class T, int kWide>
__device__ void add_wide(const T* from, float (&sum)[kWide]) {
  const Vec<T, kWide> in = *reinterpret_cast<const Vec<T, kWide>*>(from);
#pragma unroll
  for (int e = 0; e < kWide; ++e) sum[e] += widen(in.at[e]);
}

// REQUIRES: fewer than 2^32 elements.
template <class Map>
void launch_for_pixels(const Shape& images, const Map& map, const CudaDevice& device) {
  if (images.elements() == 0) return;
  with_wide(images[3], [&](auto wide) {
    const int64_t count = images.elements() / wide.value;
    for_pixels<wide.value><<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
        static_cast<unsigned>(count), static_cast<unsigned>(images[1]),
        static_cast<unsigned>(images[2]), static_cast<unsigned>(images[3]), map);
  });
}

// The kernel that calls map_of(TypeTag<T>{}, pool, args) for every pixel of the first output, which
// has the type of what is pooled. x and y are the images before and after pooling.
template <class MapOf>
std::unique_ptr<Kernel> make_pooling(const Signature& s, CudaDevice& device, const TensorType& x,
                                     const TensorType& y, const MapOf& map_of) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const Pool pool(x.shape, y.shape, s.attrs);
  return own_kernel([&device, pool, map_of](const KernelArgs& args) {
    const TensorType& out = args.outputs[0].type;
    with_device_type(out.dtype, [&](auto tag) {
      launch_for_pixels(out.shape, map_of(tag, pool, args), device);
    });
    check_launch("pooling");
  });
}

}  // namespace thimble
