// Arithmetic that the compiler may not fuse: each result is rounded by itself, as on any backend,
// so that numbers which decide about codes and roundings have the same bits everywhere.
#pragma once

namespace thimble {

__device__ inline float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float difference(float a, float b) { return __fsub_rn(a, b); }
__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float ratio(float a, float b) { return __fdiv_rn(a, b); }

}  // namespace thimble
