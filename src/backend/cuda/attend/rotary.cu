// rotary: a thread per pair of channels. y may be x.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "ops/attend/rotary_geometry.h"

namespace thimble {
namespace {

constexpr int kMostPairs = 256;
struct Frequencies {
  float at[kMostPairs];
};

// By tables [positions, size]; turning back is the transposed map.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    turn_by_tables(const T* x, T* y, int64_t count, RotaryGeometry g, const float* cosines,
                   const float* sines, const int32_t* first) {
  const int pairs = static_cast<int>(g.size) / 2, heads = static_cast<int>(g.heads);
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < count; i += gridDim.x * int64_t{blockDim.x}) {
    const int64_t head = i / pairs;
    const int d = static_cast<int>(i - head * pairs);
    const int64_t row = head / heads, at = head * g.size + d;
    T near = x[at], far = x[at + pairs];
    if (head - row * heads < g.rotated) {
      const int64_t place = g.place(first, row / g.positions, row % g.positions) * g.size + d;
      const float near_sine = g.inverse ? -sines[place + pairs] : sines[place];
      const float far_sine = g.inverse ? -sines[place] : sines[place + pairs];
      const float a = widen(near), b = widen(far);
      near = narrow<T>(a * cosines[place] - b * near_sine);
      far = narrow<T>(b * cosines[place + pairs] + a * far_sine);
    }
    y[at] = near;
    y[at + pairs] = far;
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    turn_pairs(const T* x, T* y, int64_t count, RotaryGeometry g, Frequencies frequencies,
               const int32_t* first) {
  const int pairs = static_cast<int>(g.size) / 2, heads = static_cast<int>(g.heads);
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < count; i += gridDim.x * int64_t{blockDim.x}) {
    const int64_t head = i / pairs;
    const int d = static_cast<int>(i - head * pairs);
    const int64_t row = head / heads, at = head * g.size + d;
    T near = x[at], far = x[at + pairs];
    if (head - row * heads < g.rotated) {
      const auto t = static_cast<float>(g.place(first, row / g.positions, row % g.positions));
      float sine, cosine;
      sincosf(t * frequencies.at[d], &sine, &cosine);
      if (g.inverse) sine = -sine;
      const float a = widen(near), b = widen(far);
      near = narrow<T>(a * cosine - b * sine);
      far = narrow<T>(b * cosine + a * sine);
    }
    y[at] = near;
    y[at + pairs] = far;
  }
}

const int32_t* first_positions(const RotaryGeometry& g, const KernelArgs& args) {
  return g.continued ? args.inputs.back().as<const int32_t>() : nullptr;
}

std::unique_ptr<Kernel> make_by_tables(const RotaryGeometry& g, CudaDevice& device) {
  return own_kernel([&device, g](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements() / 2;
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      turn_by_tables<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.outputs[0].as<T>(), count, g, args.inputs[1].as<float>(),
          args.inputs[2].as<float>(), first_positions(g, args));
    });
    check_launch("rotary");
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const RotaryGeometry g = rotary_geometry(s.inputs, s.attrs);
  if (g.tables && on_device(s.inputs[0].dtype)) return make_by_tables(g, device);
  if (!on_device(s.inputs[0].dtype) || g.size / 2 > kMostPairs) return nullptr;
  Frequencies frequencies{};
  for (int64_t d = 0; d < g.size / 2; ++d) {
    frequencies.at[d] = static_cast<float>(g.frequency(d));
  }
  return own_kernel([&device, g, frequencies](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements() / 2;
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      turn_pairs<<<blocks_for(count, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), args.outputs[0].as<T>(), count, g, frequencies,
          first_positions(g, args));
    });
    check_launch("rotary");
  });
}

}  // namespace

extern const CudaKernel cuda_rotary{"rotary", make};

}  // namespace thimble
