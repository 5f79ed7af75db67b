// dynamic_conv and light_conv.
#include "backend/cuda/convolve/time_conv.cuh"

namespace thimble {
namespace {

// A thread has one channel and neighbouring positions, so that what it reads of x serves all of
// them.
template <class T>
__global__ void __launch_bounds__(kConvThreads)
    convolve(ConvCall call, const T* x, const T* w, T* y) {
  extern __shared__ float room[];
  float *const taps = room, *const positions = taps + call.tile * call.kernel;
  const ConvPlace place(call);
  const int here = min(call.tile, call.steps - place.first), K = call.kernel;
  for (int t = static_cast<int>(threadIdx.x) / 32; t < here; t += kConvThreads / 32) {
    softmax_taps(call, w, call.kernel_at(place.n, place.first + t, place.head),
                 [&](int k, float p, float factor) { taps[t * K + k] = p * factor; });
  }
  load_positions(call, place, place.strip, x, place.first - call.left, call.tile + K - 1,
                 call.length(place.n), kStrip, positions);
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x) % kStrip;
  if (place.strip + column >= call.per_head) return;
  for (int t = static_cast<int>(threadIdx.x) / kStrip * kNeighbours; t < here;
       t += kConvThreads / kStrip * kNeighbours) {
    float sum[kNeighbours] = {};
    for (int s = 0; s < K + kNeighbours - 1; ++s) {
      const float value = positions[(t + s) * kStrip + column];
#pragma unroll
      for (int j = 0; j < kNeighbours; ++j) {
        const int k = s - j;
        if (k >= 0 && k < K && t + j < here) sum[j] += taps[(t + j) * K + k] * value;
      }
    }
#pragma unroll
    for (int j = 0; j < kNeighbours; ++j) {
      if (t + j >= here) break;
      y[(place.n * call.steps + place.first + t + j) * call.channels + place.head * call.per_head +
        place.strip + column] = narrow<T>(sum[j]);
    }
  }
}

}  // namespace

template <bool kShared>
std::unique_ptr<Kernel> make_time_conv(const Signature& s, CudaDevice& device) {
  const TimeConv conv(s.inputs[0].shape, kShared, s.attrs);
  const int tile = conv_tile(conv, 1);
  if (!on_device(s.inputs[0].dtype) || s.inputs[0].elements() == 0 || tile == 0) return nullptr;
  return own_kernel([&device, conv, tile](const KernelArgs& args) {
    const ConvCall call = conv_call(conv, tile, args, 2);
    const size_t floats = static_cast<size_t>(tile) * static_cast<size_t>(call.kernel) +
                          static_cast<size_t>(tile + call.kernel - 1) * kStrip;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      convolve<<<conv_grid(call, true), kConvThreads, floats * sizeof(float), device.stream>>>(
          call, args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>());
    });
    check_launch("a convolution over time");
  });
}
template std::unique_ptr<Kernel> make_time_conv<false>(const Signature& s, CudaDevice& device);
template std::unique_ptr<Kernel> make_time_conv<true>(const Signature& s, CudaDevice& device);

}  // namespace thimble
