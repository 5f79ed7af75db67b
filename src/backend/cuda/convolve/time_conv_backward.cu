// The gradients of dynamic_conv and light_conv: one launch for x, one for the kernels. Where all
// positions share these, tiles leave the sums of their taps behind, for one more launch.
//
//   scratch  | light_conv: gradients of taps f32 [N * tiles, H, K]
#include "backend/cuda/convolve/time_conv.cuh"

namespace thimble {
namespace {

// dx[s] = sum over k of tap k of position s + left - k, times dy there.
template <class T>
__global__ void __launch_bounds__(kConvThreads)
    to_data(ConvCall call, const T* w, const T* dy, T* dx, bool add) {
  extern __shared__ float room[];
  float *const taps = room, *const positions = taps + call.tile * call.kernel;
  const ConvPlace place(call);
  const int here = min(call.tile, call.steps - place.first), K = call.kernel;
  // Position `reader` reads the tile from place.first on through its taps: tap k reads
  // reader + k - left.
  const int first_reader = place.first + call.left - (K - 1);
  for (int i = static_cast<int>(threadIdx.x); i < call.tile * K; i += kConvThreads) taps[i] = 0;
  __syncthreads();
  for (int r = static_cast<int>(threadIdx.x) / 32; r < call.tile + K - 1; r += kConvThreads / 32) {
    const int reader = first_reader + r;
    if (reader < 0 || reader >= call.steps) continue;
    softmax_taps(call, w, call.kernel_at(place.n, reader, place.head),
                 [&](int k, float p, float factor) {
                   const int s = reader + k - call.left - place.first;
                   if (s >= 0 && s < call.tile) taps[s * K + k] = p * factor;
                 });
  }
  load_positions(call, place, place.strip, dy, first_reader, call.tile + K - 1, call.steps, kStrip,
                 positions);
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x) % kStrip, length = call.length(place.n);
  if (place.strip + column >= call.per_head) return;
  for (int s = static_cast<int>(threadIdx.x) / kStrip; s < here; s += kConvThreads / kStrip) {
    float sum = 0;
    // Tap k of the reader in row s + K - 1 - k.
    for (int k = 0; k < K && place.first + s < length; ++k) {
      sum += taps[s * K + k] * positions[(s + K - 1 - k) * kStrip + column];
    }
    store(&dx[(place.n * call.steps + place.first + s) * call.channels +
              place.head * call.per_head + place.strip + column],
          sum, add);
  }
}

// Rows one number longer than a strip, so that threads next to each other, which read rows next to
// each other, do not meet in a bank.
constexpr int kPitch = kStrip + 1;

// Gradients of the taps, a thread per tap, over all channels of the head; then of the softmax, or,
// with `left_behind`, their sums over the tile.
template <class T>
__global__ void __launch_bounds__(kConvThreads)
    to_kernels(ConvCall call, const T* x, const T* w, const T* dy, T* dw, bool add,
               float* left_behind) {
  extern __shared__ float room[];
  const int K = call.kernel;
  float *const d = room, *const of_x = d + call.tile * K,
               *const of_dy = of_x + (call.tile + K - 1) * kPitch;
  const ConvPlace place(call);
  const int here = min(call.tile, call.steps - place.first);
  for (int i = static_cast<int>(threadIdx.x); i < call.tile * K; i += kConvThreads) d[i] = 0;
  for (int strip = 0; strip < call.per_head; strip += kStrip) {
    __syncthreads();
    load_positions(call, place, strip, x, place.first - call.left, call.tile + K - 1,
                   call.length(place.n), kPitch, of_x);
    load_positions(call, place, strip, dy, place.first, call.tile, call.steps, kPitch, of_dy);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < here * K; i += kConvThreads) {
      const int t = i / K, k = i - t * K;
      float sum = 0;
      for (int c = 0; c < kStrip; ++c) sum += of_dy[t * kPitch + c] * of_x[(t + k) * kPitch + c];
      d[i] += sum;
    }
  }
  __syncthreads();
  if (left_behind != nullptr) {
    for (int k = static_cast<int>(threadIdx.x); k < K; k += kConvThreads) {
      float sum = 0;
      for (int t = 0; t < here; ++t) sum += d[t * K + k];
      left_behind[(blockIdx.x * int64_t{gridDim.y} + place.head) * K + k] =
          sum * call.factor(call.kernel_at(0, 0, place.head) + k);
    }
    return;
  }
  for (int t = static_cast<int>(threadIdx.x) / 32; t < here; t += kConvThreads / 32) {
    const int64_t at = call.kernel_at(place.n, place.first + t, place.head);
    float* const own = d + t * K;
    float mean = 0;
    softmax_taps(call, w, at, [&](int k, float p, float factor) {
      own[k] *= factor;
      mean += p * own[k];
    });
    mean = warp_fold(mean, [](float a, float b) { return a + b; });
    softmax_taps(call, w, at,
                 [&](int k, float p, float) { store(&dw[at + k], p * (own[k] - mean), add); });
  }
}

// A warp per head.
template <class T>
__global__ void add_up(ConvCall call, const T* w, const float* left_behind, T* dw, bool add) {
  const int head = static_cast<int>(blockIdx.x), K = call.kernel;
  const int64_t at = int64_t{head} * K, parts = call.batch * call.tiles;
  const auto whole = [&](int k) {
    float sum = 0;
    for (int64_t i = 0; i < parts; ++i) sum += left_behind[(i * call.heads + head) * K + k];
    return sum;
  };
  float mean = 0;
  softmax_taps(call, w, at, [&](int k, float p, float) { mean += p * whole(k); });
  mean = warp_fold(mean, [](float a, float b) { return a + b; });
  softmax_taps(call, w, at,
               [&](int k, float p, float) { store(&dw[at + k], p * (whole(k) - mean), add); });
}

}  // namespace

template <bool kShared>
std::unique_ptr<Kernel> make_time_conv_backward(const Signature& s, CudaDevice& device) {
  const TimeConv conv(s.inputs[0].shape, kShared, s.attrs);
  const int tile = conv_tile(conv, 2);
  if (!on_device(s.inputs[0].dtype) || s.inputs[0].elements() == 0 || tile == 0) return nullptr;
  const int64_t tiles = (conv.steps + tile - 1) / tile;
  const int64_t behind = kShared ? conv.batch * tiles * conv.heads * conv.kernel : 0;
  const auto launch = [&device, conv, tile](const KernelArgs& args) {
    const ConvCall call = conv_call(conv, tile, args, 3);
    const auto reach = static_cast<size_t>(tile + call.kernel - 1);
    const size_t taps = static_cast<size_t>(tile) * static_cast<size_t>(call.kernel);
    auto* const left_behind = kShared ? reinterpret_cast<float*>(args.workspace) : nullptr;
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto in = [&](size_t i) -> const T* { return args.inputs[i].as<T>(); };
      to_kernels<<<conv_grid(call, false), kConvThreads,
                   (taps + (reach + static_cast<size_t>(tile)) * kPitch) * sizeof(float),
                   device.stream>>>(call, in(0), in(1), in(2), args.outputs[1].as<T>(),
                                    args.adds_into(1), left_behind);
      if (kShared) {
        add_up<<<static_cast<unsigned>(call.heads), 32, 0, device.stream>>>(
            call, in(1), left_behind, args.outputs[1].as<T>(), args.adds_into(1));
      }
      to_data<<<conv_grid(call, true), kConvThreads, (taps + reach * kStrip) * sizeof(float),
                device.stream>>>(call, in(1), in(2), args.outputs[0].as<T>(), args.adds_into(0));
    });
    check_launch("the gradient of a convolution over time");
  };
  return own_kernel(launch, Bytes(behind * int64_t{sizeof(float)}));
}
template std::unique_ptr<Kernel> make_time_conv_backward<false>(const Signature& s,
                                                                CudaDevice& device);
template std::unique_ptr<Kernel> make_time_conv_backward<true>(const Signature& s,
                                                               CudaDevice& device);

}  // namespace thimble
