// Shared by the two kinds of adafactor_update: attrs epsilon (1e-30), clip (1), weight_decay (0).
// See update_extras.cuh for inputs behind lr and step; weight and gradient have each a dtype of its
// own.
//   beta = 1 - step^-0.8;  second moments are means of g^2 + epsilon under it
//   u = g / sqrt(second moment);  w' = w - lr weight_decay w - lr u / max(1, rms(u) / clip)
// The sum of u^2 is needed before any weight moves: blocks leave their parts in the workspace, and
// every block of the next launch adds them up, in one order.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/pointwise/unfused.cuh"
#include "backend/cuda/update/update_extras.cuh"

namespace thimble {

// The sum over the block, in every thread. Threads sum in float where they sum much.
template <int kThreads>
__device__ double block_total(double value) {
  __shared__ double sums[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  double total = 0;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) total += sums[w];
  return total;
}

struct AdafactorStep {
  float epsilon, clip, decay;
  const float* lr = nullptr;
  const float* step = nullptr;
  UpdateExtras extras = {};

  explicit AdafactorStep(const Attrs& attrs)
      : epsilon(static_cast<float>(attrs.real("epsilon", 1e-30))),
        clip(static_cast<float>(attrs.real("clip", 1))),
        decay(static_cast<float>(attrs.real("weight_decay", 0))) {}

  // The share of a new mean of squares in the second moment.
  __device__ float take() const { return powf(*step, -0.8f); }
  __device__ float averaged(float before, float mean, float taken) const {
    return (1 - taken) * before + taken * mean;
  }

  // The length of a step along u, in every thread.
  __device__ float length(const double* parts, unsigned count, int64_t elements) const {
    double part = 0;
    for (unsigned i = threadIdx.x; i < count; i += kBlockThreads) part += parts[i];
    const double squares = block_total<kBlockThreads>(part);
    const auto rms = static_cast<float>(sqrt(squares / static_cast<double>(elements)));
    return *lr / fmaxf(1, rms / clip);
  }

  // Moves the weight along u, whose elements are u(e) for a quad's e.
  template <class Direction>
  __device__ void move_quad(const Numbers& w, int64_t quad, int valid, float along,
                            const UpdateRounding& rounding, const Numbers& next_w,
                            const Direction& u) const {
    const float shrink = 1 - *lr * decay;
    Quad moved = widen(load_bits(w, quad, valid), w.dtype);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e < valid) moved.at[e] = shrink * moved.at[e] - along * u(e);
    }
    rounding.apply(moved, next_w.dtype, quad, 0);
    store_quad(next_w, quad, moved, valid);
  }
};

// Four neighbours of the gradient, multiplied by the update's factor.
__device__ inline Quad load_gradient(const Numbers& g, int64_t quad, int valid, float factor) {
  Quad x = widen(load_bits(g, quad, valid), g.dtype);
#pragma unroll
  for (int e = 0; e < 4; ++e) x.at[e] = product(factor, x.at[e]);
  return x;
}

// Few parts, so that adding them up takes no time.
inline unsigned adafactor_blocks(int64_t elements, const CudaDevice& device) {
  const int64_t wanted = (elements + 8 * kBlockThreads - 1) / (8 * kBlockThreads);
  return static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, 2 * int64_t{device.multiprocessors}));
}
inline Bytes adafactor_workspace(unsigned blocks) {
  return Bytes(static_cast<int64_t>(blocks * sizeof(double)));
}

}  // namespace thimble
