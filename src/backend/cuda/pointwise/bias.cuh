// y = act(x + bias), a bias per column: a map of columns (reduce/columns.cuh).
#pragma once

#include "backend/cuda/pointwise/activation.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {

template <class T, class Activation>
struct AddBias {
  using Channel = float;
  const T* bias;
  Activation activation;

  __device__ float channel(int c) const { return widen(bias[c]); }
  __device__ float operator()(float x, float own) const { return activation(x + own); }
};

}  // namespace thimble
