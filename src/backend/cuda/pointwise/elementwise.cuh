// Kernels whose elements do not depend on each other: y[i] = map(a[i], b[i], ...), written or
// added. Outputs may lie where an input does: an element is read before it is written, by one
// thread.
#pragma once

#include <algorithm>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/numbers.cuh"

namespace thimble {

constexpr int kBlockThreads = 256;

// Blocks for `count` threads' worth of work, at most as many as keep the device busy: kernels
// stride over the rest.
inline unsigned blocks_for(int64_t count, const CudaDevice& device) {
  const int64_t most = int64_t{device.multiprocessors} * 16;
  const int64_t wanted = (count + kBlockThreads - 1) / kBlockThreads;
  return static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, most));
}

template <class T, int kInputs>
struct Sources {
  const T* at[kInputs];
};

template <class T, int kInputs, class Map>
__device__ float mapped(const T (&in)[kInputs], const Map& map) {
  if constexpr (kInputs == 1) {
    return map(widen(in[0]));
  } else if constexpr (kInputs == 2) {
    return map(widen(in[0]), widen(in[1]));
  } else {
    return map(widen(in[0]), widen(in[1]), widen(in[2]));
  }
}

// The last elements that fill no pack are done one by one.
template <class T, int kInputs, class Map>
__global__ void map_elements(Sources<T, kInputs> in, T* out, int64_t count, bool add, Map map) {
  constexpr int kPack = Pack<T>::kCount;
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t packs = count / kPack;
  for (int64_t p = thread; p < packs; p += threads) {
    Pack<T> from[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) from[k] = reinterpret_cast<const Pack<T>*>(in.at[k])[p];
    Pack<T>* const to = reinterpret_cast<Pack<T>*>(out) + p;
    Pack<T> result{};
    if (add) result = *to;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      T one[kInputs];
#pragma unroll
      for (int k = 0; k < kInputs; ++k) one[k] = from[k].at[e];
      store(&result.at[e], mapped(one, map), add);
    }
    *to = result;
  }
  for (int64_t i = packs * kPack + thread; i < count; i += threads) {
    T one[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) one[k] = in.at[k][i];
    store(out + i, mapped(one, map), add);
  }
}

// Puts the kernel over the first kInputs inputs on the stream. REQUIRES: can_map() of its
// signature.
template <int kInputs, class Map>
void run_elementwise(const KernelArgs& args, const CudaDevice& device, Map map) {
  const TensorRef& out = args.outputs[0];
  const int64_t count = out.elements();
  if (count == 0) return;
  with_device_type(out.type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Sources<T, kInputs> in;
    for (int k = 0; k < kInputs; ++k)
      in.at[k] = args.inputs[static_cast<size_t>(k)].template as<T>();
    const unsigned blocks = blocks_for((count + Pack<T>::kCount - 1) / Pack<T>::kCount, device);
    map_elements<T, kInputs><<<blocks, kBlockThreads, 0, device.stream>>>(in, out.as<T>(), count,
                                                                          args.adds_into(0), map);
  });
  check_launch("elementwise");
}

// Whether the first `inputs` inputs have the output's type and shape, and the device knows it.
inline bool can_map(const Signature& s, int inputs) {
  bool same = on_device(s.outputs[0].dtype);
  for (int k = 0; k < inputs; ++k) same = same && s.inputs[static_cast<size_t>(k)] == s.outputs[0];
  return same;
}

// Null when the inputs do not fit.
template <int kInputs, class Map>
std::unique_ptr<Kernel> make_elementwise(const Signature& s, CudaDevice& device, Map map) {
  if (!can_map(s, kInputs)) return nullptr;
  return own_kernel(
      [&device, map](const KernelArgs& args) { run_elementwise<kInputs>(args, device, map); });
}

// The record of an op that is Map of kInputs elements, whatever its attributes.
template <int kInputs, class Map>
constexpr CudaKernel elementwise_kernel(std::string_view op) {
  return {op, [](const Signature& s, CudaDevice& device) {
            return make_elementwise<kInputs>(s, device, Map{});
          }};
}

}  // namespace thimble
