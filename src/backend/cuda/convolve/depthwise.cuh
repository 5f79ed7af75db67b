// The loops of convolutions with a filter for every channel. A thread has two neighbouring channels
// and a strip of a row: what the strip sees of a row of the image is loaded once and used for all
// of its places.
//
//   image row   x x x x x x x x x x x x x      kStrip - 1 steps and a kernel wide
//   strip             y y y y y y y
#pragma once

#include "backend/cuda/numbers.cuh"

namespace thimble::depthwise {

constexpr int kStrip = 7;  // divides the rows of images of 224 and what is halved of them

struct Sizes {
  int batch, channels;
  int in_h, in_w, out_h, out_w;
  int pad;  // negative: so much is cut off

  __host__ __device__ int strips() const { return (out_w + kStrip - 1) / kStrip; }
  __host__ __device__ int64_t places() const { return int64_t{batch} * out_h * strips(); }
};

template <class T>
struct alignas(2 * sizeof(T)) Two {
  T at[2];
};

template <class T>
__device__ float2 load_two(const T* from) {
  const Two<T> two = *reinterpret_cast<const Two<T>*>(from);
  return {widen(two.at[0]), widen(two.at[1])};
}

template <class T>
__device__ void store_two(T* to, float2 x, bool add) {
  Two<T>* const there = reinterpret_cast<Two<T>*>(to);
  Two<T> two;
  if (add) two = *there;
  store(&two.at[0], x.x, add);
  store(&two.at[1], x.y, add);
  *there = two;
}

__device__ inline void add_product(float2& sum, float2 a, float2 b) {
  sum.x += a.x * b.x;
  sum.y += a.y * b.y;
}

// Where a strip stands: which row of outputs, and from which of its places on.
struct Strip {
  int64_t row;  // of all images
  int image, oh, ow;

  __device__ Strip(const Sizes& g, int64_t place)
      : row(place / g.strips()),
        image(static_cast<int>(row / g.out_h)),
        oh(static_cast<int>(row % g.out_h)),
        ow(static_cast<int>(place % g.strips()) * kStrip) {}
};

// The part of image row ih that a strip reads, with zeros beyond the row's ends.
template <class T, int kKernel, int kStep>
struct Seen {
  static constexpr int kCount = (kStrip - 1) * kStep + kKernel;
  float2 at[kCount];

  __device__ Seen(const Sizes& g, const T* x, const Strip& strip, int ih, int channel) {
    const T* const line = x + (int64_t{strip.image} * g.in_h + ih) * g.in_w * g.channels + channel;
    const int first = strip.ow * kStep - g.pad;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int iw = first + i;
      at[i] = iw >= 0 && iw < g.in_w ? load_two(line + int64_t{iw} * g.channels) : float2{0, 0};
    }
  }
};

// Filters of the block's channels, [tap][channel], turned round where kFlip.
template <class T, int kKernel, bool kFlip>
__device__ void load_taps(const T* w, float* taps, int first, int width) {
  constexpr int kTaps = kKernel * kKernel;
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < width * kTaps;
       i += threads) {
    const int c = i / kTaps, tap = i % kTaps;
    taps[(kFlip ? kTaps - 1 - tap : tap) * width + c] = widen(w[int64_t{first} * kTaps + i]);
  }
  __syncthreads();
}

// y = x * w; with filters turned round and the padding that is left, the gradient of x for steps of
// one.
template <class T, int kKernel, int kStep, bool kFlip>
__global__ void correlate(Sizes g, const T* x, const T* w, T* y, bool add) {
  extern __shared__ float taps[];
  const int width = 2 * static_cast<int>(blockDim.x), first = static_cast<int>(blockIdx.x) * width;
  load_taps<T, kKernel, kFlip>(w, taps, first, width);
  const int own = 2 * static_cast<int>(threadIdx.x), channel = first + own;
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t place = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; place < g.places();
       place += step) {
    const Strip strip(g, place);
    float2 sums[kStrip] = {};
#pragma unroll 1
    for (int kh = 0; kh < kKernel; ++kh) {
      const int ih = strip.oh * kStep - g.pad + kh;
      if (ih < 0 || ih >= g.in_h) continue;
      const Seen<T, kKernel, kStep> seen(g, x, strip, ih, channel);
#pragma unroll
      for (int kw = 0; kw < kKernel; ++kw) {
        const float2 tap =
            *reinterpret_cast<const float2*>(taps + (kh * kKernel + kw) * width + own);
#pragma unroll
        for (int s = 0; s < kStrip; ++s) add_product(sums[s], seen.at[s * kStep + kw], tap);
      }
    }
    T* const line = y + (strip.row * g.out_w + strip.ow) * g.channels + channel;
#pragma unroll
    for (int s = 0; s < kStrip; ++s) {
      if (strip.ow + s < g.out_w) store_two(line + int64_t{s} * g.channels, sums[s], add);
    }
  }
}

// dx for steps of more than one: of each place, those windows that see it. A thread has one place.
template <class T, int kKernel, int kStep>
__global__ void spread(Sizes g, const T* dy, const T* w, T* dx, bool add) {
  extern __shared__ float taps[];
  const int width = 2 * static_cast<int>(blockDim.x), first = static_cast<int>(blockIdx.x) * width;
  load_taps<T, kKernel, false>(w, taps, first, width);
  const int own = 2 * static_cast<int>(threadIdx.x), channel = first + own;
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  const int64_t count = int64_t{g.batch} * g.in_h * g.in_w;
  for (int64_t place = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; place < count;
       place += step) {
    const int iw = static_cast<int>(place % g.in_w);
    const int ih = static_cast<int>(place / g.in_w % g.in_h);
    const int64_t image = place / g.in_w / g.in_h;
    float2 sum = {0, 0};
    for (int kh = 0; kh < kKernel; ++kh) {
      const int down = ih + g.pad - kh;
      if (down < 0 || down % kStep != 0 || down / kStep >= g.out_h) continue;
#pragma unroll
      for (int kw = 0; kw < kKernel; ++kw) {
        const int right = iw + g.pad - kw;
        if (right < 0 || right % kStep != 0 || right / kStep >= g.out_w) continue;
        const int64_t at = (image * g.out_h + down / kStep) * g.out_w + right / kStep;
        add_product(sum, load_two(dy + at * g.channels + channel),
                    *reinterpret_cast<const float2*>(taps + (kh * kKernel + kw) * width + own));
      }
    }
    store_two(dx + place * g.channels + channel, sum, add);
  }
}

// Sums of products for row blockIdx.y of the filters over the strips of slice blockIdx.z, into
// parts [slice][tap][channel].
template <class T, int kKernel, int kStep>
__global__ void weigh(Sizes g, const T* x, const T* dy, float* parts) {
  extern __shared__ float shared[];  // [threadIdx.y][kw][channel]
  const int width = 2 * static_cast<int>(blockDim.x), first = static_cast<int>(blockIdx.x) * width;
  const int own = 2 * static_cast<int>(threadIdx.x), channel = first + own;
  const int kh = static_cast<int>(blockIdx.y);
  const int64_t step = int64_t{gridDim.z} * blockDim.y;
  float2 sums[kKernel] = {};
  for (int64_t place = int64_t{blockIdx.z} * blockDim.y + threadIdx.y; place < g.places();
       place += step) {
    const Strip strip(g, place);
    const int ih = strip.oh * kStep - g.pad + kh;
    if (ih < 0 || ih >= g.in_h) continue;
    const Seen<T, kKernel, kStep> seen(g, x, strip, ih, channel);
    const T* const line = dy + (strip.row * g.out_w + strip.ow) * g.channels + channel;
#pragma unroll
    for (int s = 0; s < kStrip; ++s) {
      const float2 made =
          strip.ow + s < g.out_w ? load_two(line + int64_t{s} * g.channels) : float2{0, 0};
#pragma unroll
      for (int kw = 0; kw < kKernel; ++kw) add_product(sums[kw], seen.at[s * kStep + kw], made);
    }
  }
#pragma unroll
  for (int kw = 0; kw < kKernel; ++kw) {
    *reinterpret_cast<float2*>(shared + (static_cast<int>(threadIdx.y) * kKernel + kw) * width +
                               own) = sums[kw];
  }
  __syncthreads();
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < kKernel * width;
       i += threads) {
    float total = 0;
    for (int t = 0; t < static_cast<int>(blockDim.y); ++t) total += shared[t * kKernel * width + i];
    const int tap = kh * kKernel + i / width;
    parts[(int64_t{blockIdx.z} * kKernel * kKernel + tap) * g.channels + first + i % width] = total;
  }
}

// dw [channel][tap] from the slices' parts.
template <class T>
__global__ void join(const float* parts, T* dw, int slices, int taps, int channels, bool add) {
  const int count = taps * channels;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  float total = 0;
  for (int slice = 0; slice < slices; ++slice) total += parts[int64_t{slice} * count + i];
  store(dw + int64_t{i % channels} * taps + i / channels, total, add);
}

}  // namespace thimble::depthwise
