// upsample2d: every pixel of y fetches its own.
#include "backend/cuda/convolve/pool.cuh"

namespace thimble {
namespace {

template <class T>
struct Nearest {
  const T* x;
  T* y;
  int height, width, channels, factor;  // of y

  template <int kWide>
  __device__ void operator()(std::integral_constant<int, kWide>, int n, int h, int w, int c) const {
    const int64_t line = int64_t{n} * (height / factor) + h / factor;
    const T* const from = x + (line * (width / factor) + w / factor) * channels + c;
    T* const to = y + ((int64_t{n} * height + h) * width + w) * channels + c;
    *reinterpret_cast<Vec<T, kWide>*>(to) = *reinterpret_cast<const Vec<T, kWide>*>(from);
  }
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  const int factor = static_cast<int>(s.attrs.integer("factor"));
  return own_kernel([&device, factor](const KernelArgs& args) {
    const Shape& y = args.outputs[0].type.shape;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Nearest<T> map = {args.inputs[0].as<T>(), args.outputs[0].as<T>(),
                              static_cast<int>(y[1]), static_cast<int>(y[2]),
                              static_cast<int>(y[3]), factor};
      launch_for_pixels(y, map, device);
    });
    check_launch("upsample2d");
  });
}

}  // namespace

extern const CudaKernel cuda_upsample2d{"upsample2d", make};

}  // namespace thimble
