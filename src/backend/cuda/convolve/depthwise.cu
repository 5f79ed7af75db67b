#include <algorithm>

#include "backend/cuda/convolve/depthwise.cuh"
#include "backend/cuda/convolve/depthwise.h"
#include "backend/cuda/cuda_kernel.h"

namespace thimble {
namespace {

using depthwise::Sizes;

constexpr int kMostThreads = 256;
constexpr int kBlocks = 2048;  // of a launch, about: bits must not depend on the card

// How a kernel is laid out over channels: threads side by side, each with two of them.
struct Lanes {
  unsigned across, down, chunks;

  explicit Lanes(int64_t channels) {
    across = 32;
    while (channels / 2 % across != 0) --across;
    down = kMostThreads / across;
    chunks = static_cast<unsigned>(channels / 2) / across;
  }
  dim3 block() const { return {across, down}; }
  unsigned width() const { return 2 * across; }
  // Blocks for so many places of each chunk.
  unsigned blocks(int64_t places) const {
    const int64_t enough = (places + down - 1) / down;
    return static_cast<unsigned>(
        std::clamp<int64_t>(enough, 1, std::max(1u, 2 * kBlocks / chunks)));
  }
};

constexpr unsigned kFewestAcross = 8;  // fewer threads side by side read scattered bytes

struct Filters {
  Sizes sizes;
  int kernel, step;
};

// Calls body(integral constants of kernel and step).
template <class Body>
void with_filters(const Filters& f, Body&& body) {
  const auto with_step = [&](auto kernel) {
    if (f.step == 1) return body(kernel, std::integral_constant<int, 1>{});
    body(kernel, std::integral_constant<int, 2>{});
  };
  if (f.kernel == 3) return with_step(std::integral_constant<int, 3>{});
  if (f.kernel == 5) return with_step(std::integral_constant<int, 5>{});
  with_step(std::integral_constant<int, 7>{});
}

std::unique_ptr<Kernel> make_forward(CudaDevice& device, const Filters& f) {
  return own_kernel([&device, f](const KernelArgs& args) {
    const Lanes lanes(f.sizes.channels);
    const dim3 grid(lanes.chunks, lanes.blocks(f.sizes.places()));
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_filters(f, [&](auto kernel, auto step) {
        const size_t shared = sizeof(float) * kernel * kernel * lanes.width();
        depthwise::correlate<T, kernel(), step(), false>
            <<<grid, lanes.block(), shared, device.stream>>>(
                f.sizes, args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(),
                args.adds_into(0));
      });
    });
    check_launch("conv2d");
  });
}

// {w, dy} -> dx. By steps of one it is a convolution of dy.
std::unique_ptr<Kernel> make_data(CudaDevice& device, const Filters& f) {
  Sizes other = f.sizes;
  std::swap(other.in_h, other.out_h);
  std::swap(other.in_w, other.out_w);
  other.pad = f.kernel - 1 - f.sizes.pad;
  return own_kernel([&device, f, other](const KernelArgs& args) {
    const Lanes lanes(f.sizes.channels);
    const int64_t places =
        f.step == 1 ? other.places() : int64_t{f.sizes.batch} * f.sizes.in_h * f.sizes.in_w;
    const dim3 grid(lanes.chunks, lanes.blocks(places));
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *w = args.inputs[0].as<T>(), *dy = args.inputs[1].as<T>();
      T* const dx = args.outputs[0].as<T>();
      with_filters(f, [&](auto kernel, auto step) {
        const size_t shared = sizeof(float) * kernel * kernel * lanes.width();
        if constexpr (step() == 1) {
          depthwise::correlate<T, kernel(), 1, true>
              <<<grid, lanes.block(), shared, device.stream>>>(other, dy, w, dx, args.adds_into(0));
        } else {
          depthwise::spread<T, kernel(), step()><<<grid, lanes.block(), shared, device.stream>>>(
              f.sizes, dy, w, dx, args.adds_into(0));
        }
      });
    });
    check_launch("conv2d_backward_data");
  });
}

// {x, dy} -> dw, in two passes: sums of slices, and their sum.
std::unique_ptr<Kernel> make_weights(CudaDevice& device, const Filters& f) {
  const Lanes lanes(f.sizes.channels);
  const int64_t rounds = (f.sizes.places() + lanes.down - 1) / lanes.down;
  const auto slices = static_cast<unsigned>(std::clamp<int64_t>(
      kBlocks / (int64_t{lanes.chunks} * f.kernel), 1, std::max<int64_t>(1, rounds)));
  const int taps = f.kernel * f.kernel, count = taps * f.sizes.channels;
  const Bytes scratch(int64_t{slices} * count * static_cast<int64_t>(sizeof(float)));
  return own_kernel(
      [&device, f, lanes, slices, taps, count](const KernelArgs& args) {
        auto* const parts = reinterpret_cast<float*>(args.workspace);
        with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          with_filters(f, [&](auto kernel, auto step) {
            const dim3 grid(lanes.chunks, kernel(), slices);
            const size_t shared = sizeof(float) * lanes.down * kernel * lanes.width();
            depthwise::weigh<T, kernel(), step()><<<grid, lanes.block(), shared, device.stream>>>(
                f.sizes, args.inputs[0].as<T>(), args.inputs[1].as<T>(), parts);
          });
          depthwise::join<T>
              <<<static_cast<unsigned>((count + kMostThreads - 1) / kMostThreads), kMostThreads, 0,
                 device.stream>>>(parts, args.outputs[0].as<T>(), static_cast<int>(slices), taps,
                                  f.sizes.channels, args.adds_into(0));
        });
        check_launch("conv2d_backward_weights");
      },
      scratch);
}

}  // namespace

std::unique_ptr<Kernel> make_depthwise(CudaDevice& device, ConvPass pass, const ConvShape& s) {
  const int64_t channels = s.x[3], taps = s.w[1];
  const bool square = s.w[1] == s.w[2] && s.stride[0] == s.stride[1] && s.pad[0] == s.pad[1];
  const bool fits = channels > 1 && s.w[3] == 1 && s.w[0] == channels && square &&
                    (taps == 3 || taps == 5 || taps == 7) && s.stride[0] <= 2 &&
                    s.dilation[0] == 1 && s.dilation[1] == 1 && channels % 2 == 0;
  constexpr int64_t kMost = int64_t{1} << 30;
  if (!fits || s.x.elements() == 0 || s.y.elements() == 0 || s.x.elements() > 4 * kMost ||
      channels * taps * taps > kMost || Lanes(channels).across < kFewestAcross) {
    return nullptr;
  }
  const auto whole = [](int64_t number) { return static_cast<int>(number); };
  const Filters filters = {.sizes = {.batch = whole(s.x[0]),
                                     .channels = whole(channels),
                                     .in_h = whole(s.x[1]),
                                     .in_w = whole(s.x[2]),
                                     .out_h = whole(s.y[1]),
                                     .out_w = whole(s.y[2]),
                                     .pad = whole(s.pad[0])},
                           .kernel = whole(taps),
                           .step = whole(s.stride[0])};
  switch (pass) {
    case ConvPass::forward:
      return make_forward(device, filters);
    case ConvPass::data:
      return make_data(device, filters);
    default:
      return make_weights(device, filters);
  }
}

}  // namespace thimble
