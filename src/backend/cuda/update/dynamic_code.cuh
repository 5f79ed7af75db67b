// base/number/dynamic_quantization.h on the device: the same codes for the same numbers.
#pragma once

#include "backend/cuda/pointwise/unfused.cuh"
#include "base/number/dynamic_quantization.h"

namespace thimble {

static __device__ const std::array<float, 128> kDeviceSignedLevels = SignedCode::Levels::kLevels;
static __device__ const std::array<float, 256> kDeviceUnsignedLevels =
    UnsignedCode::Levels::kLevels;

// DynamicLevels<kCells>::round(), to the bit. A number is a decade's width times a cell, and widths
// are 0.9 over a power of two: they are known, and where the host divides in three places, one
// division serves here. In between two levels it divides by one.
template <int kCells>
__device__ int round_to_level(float a, float threshold) {
  constexpr float kUpTo[] = {1, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f};
  constexpr float kPower[] = {1, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f};
  constexpr int kDecades = std::countr_zero(static_cast<unsigned>(kCells));
  float x = a, width = 0.9f / kCells;
  int cells = kCells;
#pragma unroll
  for (int d = 1; d < kDecades; ++d) {
    const bool lower = a <= kUpTo[d];
    x = lower ? product(a, kPower[d]) : x;
    cells = lower ? kCells >> d : cells;
    width = lower ? 0.9f / static_cast<float>(kCells >> d) : width;
  }
  const float at = difference(ratio(difference(x, 0.1f), width), 0.5f);
  const int below = at >= 0 ? min(static_cast<int>(sum(at, 1)) - 1, cells - 1) : -1;
  float part = difference(at, static_cast<float>(below)), whole = 1;
  if (below == cells - 1) whole = cells == kCells ? 0.5f : 3.0f;
  if (below < 0) {
    part = cells == 2 ? x : sum(at, 0.6f);
    whole = cells == 2 ? sum(0.1f, product(0.5f, width)) : 0.6f;
  }
  return cells - 1 + below + (ratio(part, whole) > threshold ? 1 : 0);
}

// Codes have a scale() that encode() takes, of what is uniform in a block.
struct DeviceSignedCode {
  __device__ static float scale(float scale) { return scale; }
  __device__ static unsigned encode(float x, float scale, float threshold) {
    const int level = round_to_level<64>(ratio(fabsf(x), scale), threshold);
    return static_cast<unsigned>(level) | (x < 0 ? 128u : 0u);
  }
  __device__ static float decode(unsigned code) {
    const float magnitude = kDeviceSignedLevels[code & 127u];
    return (code & 128u) != 0 ? -magnitude : magnitude;
  }
};

}  // namespace thimble
