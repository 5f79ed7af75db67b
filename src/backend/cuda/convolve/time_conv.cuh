// The common part of dynamic_conv, light_conv and their gradients on the device. A block has one
// row of the batch, one head, a tile of positions and, where they need not meet, a strip of
// channels. Its taps are softmaxed on the fly, a warp to a position, and wait in shared memory with
// the positions of the tensor that the taps reach:
//
//   shared  | taps f32 [tile,K] | positions f32 [tile + K - 1, kStrip]
#pragma once

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"
#include "base/number/philox.h"
#include "ops/convolve/time_conv_geometry.h"

namespace thimble {

constexpr int kConvThreads = 256;
constexpr int kStrip = 64;      // channels
constexpr int kNeighbours = 4;  // positions that a thread works on at a time
constexpr int64_t kSharedBytes = 48 << 10;

// A call, as kernels see it.
struct ConvCall {
  int64_t batch;
  int steps, channels, heads, kernel, left, per_head;
  bool shared;  // one kernel per head
  const int32_t* lengths;
  const int64_t* rng;
  uint32_t stream;
  float p, scale;  // of DropConnect
  int tile, tiles;

  __device__ int length(int64_t n) const {
    if (lengths == nullptr) return steps;
    return min(max(lengths[n], 0), steps);
  }
  __device__ int64_t kernel_at(int64_t n, int t, int head) const {
    return ((shared ? 0 : (n * steps + t) * heads) + head) * kernel;
  }
  // DropConnect's factor for tap `at` of w.
  __device__ float factor(int64_t at) const {
    if (rng == nullptr) return 1;
    const PhiloxCounter words =
        philox({static_cast<uint32_t>(at / 4), stream, static_cast<uint32_t>(rng[1]),
                static_cast<uint32_t>(rng[2])},
               philox_key(static_cast<uint64_t>(rng[0])));
    return uniform_from(words[static_cast<size_t>(at % 4)]) >= p ? scale : 0;
  }
};

// Positions of a tile: as many as there is room for, with their taps and `buffers` times the
// positions that they reach; 0: for none.
inline int conv_tile(const TimeConv& conv, int64_t buffers) {
  for (int tile = 32; tile >= kNeighbours; tile /= 2) {
    const int64_t floats = tile * conv.kernel + buffers * (tile + conv.kernel - 1) * (kStrip + 1);
    if (floats * int64_t{sizeof(float)} <= kSharedBytes) return tile;
  }
  return 0;
}

inline ConvCall conv_call(const TimeConv& conv, int tile, const KernelArgs& args, size_t first) {
  const TimeConvExtras extras(conv, args.inputs, first);
  ConvCall call = {};
  call.batch = conv.batch;
  call.steps = static_cast<int>(conv.steps);
  call.channels = static_cast<int>(conv.channels);
  call.heads = static_cast<int>(conv.heads);
  call.kernel = static_cast<int>(conv.kernel);
  call.left = static_cast<int>(conv.left);
  call.per_head = static_cast<int>(conv.head_channels());
  call.shared = conv.shared;
  call.lengths = extras.lengths;
  call.rng = extras.rng;
  call.stream = static_cast<uint32_t>(conv.stream);
  call.p = static_cast<float>(conv.dropout);
  call.scale = static_cast<float>(1 / (1 - conv.dropout));
  call.tile = tile;
  call.tiles = (call.steps + tile - 1) / tile;
  return call;
}

// Grid: tiles of all rows of the batch, by heads, by strips of a head's channels (or one).
inline dim3 conv_grid(const ConvCall& call, bool strips) {
  return dim3(static_cast<unsigned>(call.batch * call.tiles), static_cast<unsigned>(call.heads),
              strips ? static_cast<unsigned>((call.per_head + kStrip - 1) / kStrip) : 1u);
}

// Where a block works.
struct ConvPlace {
  int64_t n;
  int first, head, strip;  // position, head, channel of the head

  __device__ explicit ConvPlace(const ConvCall& call)
      : n(blockIdx.x / call.tiles),
        first(static_cast<int>(blockIdx.x % call.tiles) * call.tile),
        head(static_cast<int>(blockIdx.y)),
        strip(static_cast<int>(blockIdx.z) * kStrip) {}
};

// The fold of a warp's numbers, in all of its threads.
template <class Fold>
__device__ float warp_fold(float own, const Fold& two) {
  for (int offset = 16; offset > 0; offset /= 2) own = two(own, __shfl_xor_sync(~0u, own, offset));
  return own;
}

// Calls put(k, p, factor) for the softmaxed taps of one kernel, which begins at tap `at` of w. By
// all threads of a warp.
template <class T, class Put>
__device__ void softmax_taps(const ConvCall& call, const T* w, int64_t at, const Put& put) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float largest = widen(w[at]), sum = 0;
  for (int k = lane; k < call.kernel; k += 32) largest = fmaxf(largest, widen(w[at + k]));
  largest = warp_fold(largest, [](float a, float b) { return fmaxf(a, b); });
  for (int k = lane; k < call.kernel; k += 32) sum += expf(widen(w[at + k]) - largest);
  sum = warp_fold(sum, [](float a, float b) { return a + b; });
  for (int k = lane; k < call.kernel; k += 32) {
    put(k, expf(widen(w[at + k]) - largest) / sum, call.factor(at + k));
  }
}

// Positions [first, first + count) of a strip of x [N,T,C] into rows of `pitch` floats; zeros
// outside of [0, end).
template <class T>
__device__ void load_positions(const ConvCall& call, const ConvPlace& place, int strip, const T* x,
                               int first, int count, int end, int pitch, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < count * kStrip; i += kConvThreads) {
    const int row = i / kStrip, column = i % kStrip, t = first + row;
    const bool there = t >= 0 && t < end && strip + column < call.per_head;
    to[row * pitch + column] = there ? widen(x[(place.n * call.steps + t) * call.channels +
                                               place.head * call.per_head + strip + column])
                                     : 0.0f;
  }
}

template <bool kShared>
std::unique_ptr<Kernel> make_time_conv(const Signature& s, CudaDevice& device);
template <bool kShared>
std::unique_ptr<Kernel> make_time_conv_backward(const Signature& s, CudaDevice& device);

}  // namespace thimble
