// Codes of 8-bit state by tables in shared memory (base/number/branchless_code.h): an update is
// bound by the instructions that it issues.
#pragma once

#include "backend/cuda/update/dynamic_code.cuh"
#include "base/number/branchless_code.h"

namespace thimble {

// Each result rounded by itself, or once where that is what is asked for. Hosts only compile it.
struct DeviceArithmetic {
#ifdef __CUDA_ARCH__
  __device__ static float add(float a, float b) { return __fadd_rn(a, b); }
  __device__ static float sub(float a, float b) { return __fsub_rn(a, b); }
  __device__ static float mul(float a, float b) { return __fmul_rn(a, b); }
  __device__ static float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  // The sum has no room for a fraction.
  __device__ static float floor(float a) { return __fsub_rn(__fadd_rz(a, 8388608.0f), 8388608.0f); }
  __device__ static uint32_t whole(float a) {
    return __float_as_uint(__fadd_rz(a, 8388608.0f)) & 255u;
  }
#else
  static float add(float a, float b) { return a + b; }
  static float sub(float a, float b) { return a - b; }
  static float mul(float a, float b) { return a * b; }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float floor(float a) { return std::floor(a); }
  static uint32_t whole(float a) { return static_cast<uint32_t>(a); }
#endif
};

static __device__ const NearestTables<64> kDeviceSignedTables = NearestTables<64>::make();
static __device__ const CodeTables<128> kDeviceUnsignedTables = CodeTables<128>::make();

// The tables of a block's threads, which read them at places of their own. Codes of both signs.
struct CodeRoom {
  NearestTables<64> of_signed;
  CodeTables<128> of_unsigned;
  float signed_levels[256];
  float unsigned_levels[256];
};
__device__ inline CodeRoom& code_room() {
  __shared__ CodeRoom room;
  return room;
}
// The least numbers of the levels of signed codes, as an argument of a kernel.
struct SignedLeast {
  float at[128];
};
inline const SignedLeast& signed_least() {
  static const SignedLeast least = [] {
    SignedLeast made;
    std::ranges::copy(least_of_levels<64>(), made.at);
    return made;
  }();
  return least;
}
// REQUIRES: all threads of the block, before codes are made or read.
__device__ inline void load_code_room(const SignedLeast& least) {
  CodeRoom& room = code_room();
  const auto copy = [](auto& to, const auto& from) {
    constexpr int kWords = sizeof(to) / sizeof(uint32_t);
    for (int i = static_cast<int>(threadIdx.x); i < kWords; i += static_cast<int>(blockDim.x)) {
      reinterpret_cast<uint32_t*>(&to)[i] = reinterpret_cast<const uint32_t*>(&from)[i];
    }
  };
  copy(room.of_signed, kDeviceSignedTables);
  copy(room.of_unsigned, kDeviceUnsignedTables);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 128; i += blockDim.x) {
    room.of_signed.levels[i] = level_of_least<64>(least.at, static_cast<int>(i));
  }
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
    room.signed_levels[i] = DeviceSignedCode::decode(i);
    room.unsigned_levels[i] = kDeviceUnsignedLevels[i];
  }
  __syncthreads();
}

// By the tables of the room. Signed numbers are rounded to the nearest.
struct TabledCode {
  __device__ static BlockScale scale(float scale) {
    return block_scale(scale, [](float x) { return __frcp_rn(x); });
  }
};
struct TabledSignedCode : TabledCode {
  __device__ static unsigned encode(float x, const BlockScale& scale, float) {
    return signed_code<DeviceArithmetic>(x, scale, code_room().of_signed);
  }
  __device__ static float decode(unsigned code) { return code_room().signed_levels[code]; }
};
struct TabledUnsignedCode : TabledCode {
  __device__ static unsigned encode(float x, const BlockScale& scale, float threshold) {
    return unsigned_code<DeviceArithmetic>(x, scale, threshold, code_room().of_unsigned);
  }
  __device__ static float decode(unsigned code) { return code_room().unsigned_levels[code]; }
};

}  // namespace thimble
