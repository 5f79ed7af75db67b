// The arguments of every attention kernel: its geometry, the addresses of q, k and v, and optional
// inputs.
#pragma once

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"
#include "base/number/philox.h"
#include "ops/attend/attention_geometry.h"

namespace thimble {

// The random mask of dropout: what the probability of a key is multiplied by, 0 or `scale`.
struct KeptKeys {
  PhiloxKey key;
  uint32_t stream, step, microbatch;
  float p, scale;

  __device__ KeptKeys(const AttentionGeometry& g, const int64_t* rng)
      : key(philox_key(static_cast<uint64_t>(rng[0]))),
        stream(static_cast<uint32_t>(g.stream)),
        step(static_cast<uint32_t>(rng[1])),
        microbatch(static_cast<uint32_t>(rng[2])),
        p(static_cast<float>(g.drop)),
        scale(static_cast<float>(1 / (1 - g.drop))) {}

  // Of four neighbours, from element 4 * draw on.
  __device__ PhiloxCounter words(int64_t draw) const {
    return philox({static_cast<uint32_t>(draw), stream, step, microbatch}, key);
  }
  __device__ bool keeps(uint32_t word) const { return uniform_from(word) >= p; }
  __device__ bool keeps(int64_t element) const {
    const PhiloxCounter four = words(element / 4);
    const int at = static_cast<int>(element % 4);
    return keeps(at < 2 ? (at == 0 ? four[0] : four[1]) : (at == 2 ? four[2] : four[3]));
  }
};

template <class T>
struct AttentionCall {
  AttentionGeometry g;
  const T *q, *k, *v;
  const int32_t* lengths;  // or first positions
  const int32_t* begins;
  const int64_t* rng;

  // extras: the inputs that are there for padding, documents and dropout.
  AttentionCall(const AttentionGeometry& geometry, const KernelArgs& args,
                std::span<const TensorRef> extras)
      : g(geometry), q(nullptr), k(nullptr), v(nullptr) {
    const AttentionParts<const T> parts(g, args.inputs);
    q = parts.q, k = parts.k, v = parts.v;
    const AttentionExtras there(g, extras);
    lengths = there.lengths, begins = there.begins, rng = there.rng;
  }

  __device__ int64_t length(int64_t n) const { return g.length(lengths, n); }
  // The first key that query i sees.
  __device__ int64_t first(int64_t n, int64_t i) const {
    return begins == nullptr ? 0 : g.first_seen(i, begins[n * g.queries + i]);
  }
};

// Where the parts of sums are in the scratch, behind the deltas: a multiple of 256 bytes, in floats.
inline int64_t parts_at(const AttentionGeometry& g) {
  return (g.rows * g.heads * g.queries + 63) / 64 * 64;
}

// Further inputs and outputs of the gradient.
template <class T>
struct AttentionGradients {
  const T *y, *dy;
  const float* lse;
  float* delta;  // [N,H,Tq], dy . y of each query's head
  float* parts;  // of dk and dv, where heads sum apart
  T *dq, *dk, *dv;

  AttentionGradients(const AttentionGeometry& g, const KernelArgs& args) {
    const auto rest = args.inputs.subspan(g.sources());
    y = rest[0].template as<const T>(), dy = rest[2].template as<const T>();
    lse = rest[1].template as<const float>();
    delta = reinterpret_cast<float*>(args.workspace);
    parts = delta + parts_at(g);
    const AttentionParts<T> to(g, args.outputs);
    dq = to.q, dk = to.k, dv = to.v;
  }
};

inline Bytes delta_bytes(const AttentionGeometry& g) {
  return Bytes(g.rows * g.heads * g.queries * static_cast<int64_t>(sizeof(float)));
}

}  // namespace thimble
