// Shared by add, sub and mul: y = combine(a, b), broadcast against each other.
#pragma once

#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/shape/strided.cuh"

namespace thimble {

// Tensors 0 and 1 are the inputs; the output is met in its order. An input repeats along the
// innermost axis where its stride there is 0.
template <int kPack, class T, class Combine>
__global__ void combine_strided(const T* a, const T* b, T* y, Strided<2> shape, bool add,
                                Combine combine) {
  struct alignas(kPack * sizeof(T)) Few {
    T at[kPack];
  };
  const bool a_repeats = kPack > 1 && shape.stride[0][shape.rank - 1] == 0;
  const bool b_repeats = kPack > 1 && shape.stride[1][shape.rank - 1] == 0;
  const uint32_t threads = gridDim.x * blockDim.x;
  for (uint64_t p = blockIdx.x * blockDim.x + threadIdx.x; p < shape.packs; p += threads) {
    int64_t at[2];
    shape.locate(static_cast<uint32_t>(p), at);
    Few left, right, result;
    if (a_repeats) {
      const T one = a[at[0]];
#pragma unroll
      for (int e = 0; e < kPack; ++e) left.at[e] = one;
    } else {
      left = *reinterpret_cast<const Few*>(a + at[0]);
    }
    if (b_repeats) {
      const T one = b[at[1]];
#pragma unroll
      for (int e = 0; e < kPack; ++e) right.at[e] = one;
    } else {
      right = *reinterpret_cast<const Few*>(b + at[1]);
    }
    Few* const to = reinterpret_cast<Few*>(y) + p;
    if (add) result = *to;
#pragma unroll
    for (int e = 0; e < kPack; ++e) {
      store(&result.at[e], combine(widen(left.at[e]), widen(right.at[e])), add);
    }
    *to = result;
  }
}

inline StridedAxes<2> broadcast_axes(const Signature& s) {
  const Shape& y = s.outputs[0].shape;
  int64_t stride[2][Shape::kMaxRank] = {};
  for (int k = 0; k < 2; ++k) {
    const Shape& from = s.inputs[static_cast<size_t>(k)].shape;
    int64_t next = 1;
    for (int axis = from.rank() - 1; axis >= 0; --axis) {
      stride[k][axis + y.rank() - from.rank()] = from[axis] == 1 ? 0 : next;
      next *= from[axis];
    }
  }
  StridedAxes<2> axes;
  for (int axis = 0; axis < y.rank(); ++axis) {
    axes.add(y[axis], {stride[0][axis], stride[1][axis]});
  }
  return axes;
}

template <class Combine>
std::unique_ptr<Kernel> make_binary(const Signature& s, CudaDevice& device, Combine combine) {
  const DType dtype = s.outputs[0].dtype;
  if (!on_device(dtype) || s.inputs[0].dtype != dtype || s.inputs[1].dtype != dtype) return nullptr;
  if (can_map(s, 2)) return make_elementwise<2>(s, device, combine);
  const StridedAxes<2> axes = broadcast_axes(s);
  const int64_t pack = 16 / size_of(dtype);
  const bool packed = axes.packs_of(pack);
  const Strided<2> shape = axes.geometry(packed ? pack : 1);
  if (shape.packs == 0) return nullptr;
  return own_kernel([&device, combine, shape, packed](const KernelArgs& args) {
    const unsigned blocks = blocks_for(shape.packs, device);
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto launch = [&](auto kernel) {
        kernel<<<blocks, kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<T>(), args.outputs[0].as<T>(), shape,
            args.adds_into(0), combine);
      };
      if (packed) {
        launch(combine_strided<Pack<T>::kCount, T, Combine>);
      } else {
        launch(combine_strided<1, T, Combine>);
      }
    });
    check_launch("broadcast");
  });
}

// The record of an op that is Combine of two elements.
template <class Combine>
constexpr CudaKernel binary_kernel(std::string_view op) {
  return {op,
          [](const Signature& s, CudaDevice& device) { return make_binary(s, device, Combine{}); }};
}

}  // namespace thimble
