// base/number/dynamic_quantization.h on the device: the same codes for the same numbers.
#pragma once

#include "backend/cuda/pointwise/unfused.cuh"
#include "base/number/dynamic_quantization.h"

namespace thimble {

static __device__ const std::array<float, 128> kDeviceSignedLevels = SignedCode::Levels::kLevels;
static __device__ const std::array<float, 256> kDeviceUnsignedLevels =
    UnsignedCode::Levels::kLevels;

// DynamicLevels<kCells>::round().
template <int kCells>
__device__ int round_to_level(float a, float threshold) {
  constexpr float kUpTo[] = {1, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f};
  constexpr float kPower[] = {1, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f};
  constexpr int kDecades = std::countr_zero(static_cast<unsigned>(kCells));
  float x = a;
  int cells = kCells;
#pragma unroll
  for (int d = 1; d < kDecades; ++d) {
    x = a <= kUpTo[d] ? product(a, kPower[d]) : x;
    cells = a <= kUpTo[d] ? kCells >> d : cells;
  }
  const float width = ratio(0.9f, static_cast<float>(cells));
  const float at = difference(ratio(difference(x, 0.1f), width), 0.5f);
  int below = static_cast<int>(sum(at, 1)) - 1;
  float share = difference(at, static_cast<float>(below));
  const float from_lower = ratio(sum(at, 0.6f), 0.6f);
  const float from_zero = ratio(x, sum(0.1f, product(0.5f, width)));
  const float to_upper =
      ratio(difference(at, static_cast<float>(cells - 1)), cells == kCells ? 0.5f : 3.0f);
  share = at >= 0 ? share : cells == 2 ? from_zero : from_lower;
  below = at >= 0 ? below : -1;
  share = below >= cells - 1 ? to_upper : share;
  below = below >= cells - 1 ? cells - 1 : below;
  return cells - 1 + below + (share > threshold ? 1 : 0);
}

struct DeviceSignedCode {
  __device__ static unsigned encode(float x, float scale, float threshold) {
    const int level = round_to_level<64>(ratio(fabsf(x), scale), threshold);
    return static_cast<unsigned>(level) | (x < 0 ? 128u : 0u);
  }
  __device__ static float decode(unsigned code) {
    const float magnitude = kDeviceSignedLevels[code & 127u];
    return (code & 128u) != 0 ? -magnitude : magnitude;
  }
};

struct DeviceUnsignedCode {
  __device__ static unsigned encode(float x, float scale, float threshold) {
    const int level = round_to_level<128>(ratio(x, scale), threshold);
    return static_cast<unsigned>(x > 0 ? max(level, 1) : level);
  }
  __device__ static float decode(unsigned code) { return kDeviceUnsignedLevels[code & 255u]; }
};

}  // namespace thimble
