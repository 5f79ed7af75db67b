// Shared by lstm_steps and its gradient: launches over the units of one time step, few enough that
// blocks are small, so that all of the device has some.
#pragma once

#include <algorithm>

#include "backend/cuda/recurrent/step_product.h"
#include "backend/cuda/reduce/columns.cuh"
#include "backend/cuda/shape/rows.cuh"

namespace thimble {

constexpr int kStepThreads = 128;

// x [K,B,I], h [B,H].
struct LstmRun {
  int64_t steps, batch, inputs, hidden;

  LstmRun(const TensorType& x, const TensorType& h)
      : steps(x.shape[0]), batch(x.shape[1]), inputs(x.shape[2]), hidden(h.shape[1]) {}

  int64_t rows() const { return steps * batch; }
  int64_t states() const { return batch * hidden; }  // of one step; four times as many gates
};

// Blocks for `states` units, kWide of them to a thread; kernels stride over the rest.
inline unsigned step_blocks(int64_t states, int wide, const CudaDevice& device) {
  const int64_t wanted = (states / wide + kStepThreads - 1) / kStepThreads;
  return static_cast<unsigned>(
      std::clamp<int64_t>(wanted, 1, int64_t{device.multiprocessors} * 16));
}

// Calls body(at, row) for the thread's units, kWide neighbours from `at` on; their row of [B,H]
// begins at `row`. In [B,4H], their first gate is at `at + 3 * row`, the others `hidden` apart.
template <int kWide, class Body>
__device__ void for_each_unit(int64_t states, int64_t hidden, const Body& body) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i * kWide < states;
       i += threads) {
    const int64_t at = i * kWide;
    body(at, quotient(at, hidden) * hidden);
  }
}

template <class T, int kWide>
__device__ Vec<T, kWide> load_wide(const T* from) {
  return *reinterpret_cast<const Vec<T, kWide>*>(from);
}

// Zeros where there is nothing to load. Sums are formed behind all loads, so that these are on
// their way together.
template <class T, int kWide>
__device__ Vec<T, kWide> load_if(const T* from, int64_t at) {
  Vec<T, kWide> in{};
  if (from != nullptr) in = load_wide<T, kWide>(from + at);
  return in;
}

// The results of a StepProduct, still in parts.
struct PartSums {
  const float* first;
  int count;  // 0: nothing
  int64_t apart;
};

// Adds up the parts of kPlaces packs, `hidden` apart from each other.
template <int kWide, int kPlaces>
__device__ void add_parts(const PartSums& parts, int64_t at, int64_t hidden,
                          float (&sum)[kPlaces][kWide]) {
#pragma unroll(kPlaces == 1 ? 8 : 2)
  for (int p = 0; p < parts.count; ++p) {
    const float* const from = parts.first + p * parts.apart + at;
    Vec<float, kWide> in[kPlaces];
#pragma unroll
    for (int k = 0; k < kPlaces; ++k) in[k] = load_wide<float, kWide>(from + k * hidden);
#pragma unroll
    for (int k = 0; k < kPlaces; ++k) {
#pragma unroll
      for (int e = 0; e < kWide; ++e) sum[k][e] += in[k].at[e];
    }
  }
}

}  // namespace thimble
