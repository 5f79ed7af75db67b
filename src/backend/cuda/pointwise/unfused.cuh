// Arithmetic that the compiler may not fuse: each result is rounded by itself, as on any backend,
// so that numbers which decide about codes and roundings have the same bits everywhere.
#pragma once

namespace thimble {

__device__ inline float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float difference(float a, float b) { return __fsub_rn(a, b); }
__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float ratio(float a, float b) { return __fdiv_rn(a, b); }

// A float whose arithmetic the compiler may not fuse.
struct Unfused {
  float value;

  Unfused() = default;
  explicit constexpr Unfused(float x) : value(x) {}
  explicit constexpr Unfused(double x) : value(static_cast<float>(x)) {}
  __device__ explicit operator float() const { return value; }

  __device__ friend Unfused operator+(Unfused a, Unfused b) {
    return Unfused(sum(a.value, b.value));
  }
  __device__ friend Unfused operator-(Unfused a, Unfused b) {
    return Unfused(difference(a.value, b.value));
  }
  __device__ friend Unfused operator*(Unfused a, Unfused b) {
    return Unfused(product(a.value, b.value));
  }
  __device__ friend Unfused operator/(Unfused a, Unfused b) {
    return Unfused(ratio(a.value, b.value));
  }
  __device__ friend Unfused operator-(Unfused a) { return Unfused(-a.value); }
  __device__ friend bool operator<(Unfused a, Unfused b) { return a.value < b.value; }
  __device__ friend bool operator>(Unfused a, Unfused b) { return a.value > b.value; }
  __device__ friend Unfused square_root(Unfused a) { return Unfused(__fsqrt_rn(a.value)); }
};

}  // namespace thimble
