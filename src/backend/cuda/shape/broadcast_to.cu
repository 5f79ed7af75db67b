// broadcast_to: axes that are repeated or read together become one; a thread has neighbours along
// the last.
#include "backend/cuda/pointwise/elementwise.cuh"
#include "backend/cuda/reduce/columns.cuh"

namespace thimble {
namespace {

// Of y, outermost first, with the strides that x is read by: 0 where it repeats.
struct Walk {
  int count = 0;
  uint32_t extent[Shape::kMaxRank];
  int64_t stride[Shape::kMaxRank];
};

Walk walk_of(const Shape& x, const Shape& y) {
  Walk walk;
  int64_t stride = x.elements();
  for (int axis = 0; axis < y.rank(); ++axis) {
    const int own = axis - (y.rank() - x.rank());
    const int64_t extent = own < 0 ? 1 : x[own];
    stride = extent == 0 ? 0 : stride / extent;
    if (y[axis] == 1) continue;
    const int64_t step = extent == 1 ? 0 : stride;
    const int last = walk.count - 1;
    const bool joins = last >= 0 && walk.stride[last] == step * y[axis];
    const int at = joins ? last : walk.count++;
    walk.extent[at] = static_cast<uint32_t>(y[axis]) * (joins ? walk.extent[at] : 1);
    walk.stride[at] = step;
  }
  if (walk.count == 0) walk.extent[walk.count] = 1, walk.stride[walk.count++] = 0;
  return walk;
}

template <class T, int kWide>
__global__ void __launch_bounds__(kBlockThreads)
    repeat(const T* x, T* y, uint32_t packs, Walk walk, bool add) {
  const uint32_t threads = gridDim.x * blockDim.x;
  const bool moves = walk.stride[walk.count - 1] != 0;  // along the last axis
  for (uint64_t p = blockIdx.x * blockDim.x + threadIdx.x; p < packs; p += threads) {
    uint32_t index = static_cast<uint32_t>(p);
    int64_t from = 0;
#pragma unroll
    for (int a = Shape::kMaxRank - 1; a >= 0; --a) {
      if (a >= walk.count) continue;
      const int each = a == walk.count - 1 ? kWide : 1;
      const uint32_t extent = walk.extent[a] / each, rest = index / extent;
      from += int64_t{index - rest * extent} * each * walk.stride[a];
      index = rest;
    }
    Vec<T, kWide> in;
    if (moves) {
      in = *reinterpret_cast<const Vec<T, kWide>*>(x + from);
    } else {
#pragma unroll
      for (int e = 0; e < kWide; ++e) in.at[e] = x[from];
    }
    if (add) {
      float value[kWide];
#pragma unroll
      for (int e = 0; e < kWide; ++e) value[e] = widen(in.at[e]);
      store_wide<T, kWide>(y + p * kWide, value, true);
    } else {
      reinterpret_cast<Vec<T, kWide>*>(y)[p] = in;
    }
  }
}

// The last axis is read in steps of one or not at all: packs of it are aligned.
std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& y = s.outputs[0];
  if (!on_device(y.dtype) || y.elements() > (int64_t{1} << 32)) return nullptr;
  const Walk walk = walk_of(s.inputs[0].shape, y.shape);
  return own_kernel([&device, walk](const KernelArgs& args) {
    const int64_t count = args.outputs[0].elements();
    if (count == 0) return;
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_wide(walk.extent[walk.count - 1], [&](auto wide) {
        const int64_t packs = count / wide.value;
        repeat<T, wide.value><<<blocks_for(packs, device), kBlockThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.outputs[0].as<T>(), static_cast<uint32_t>(packs), walk,
            args.adds_into(0));
      });
    });
    check_launch("broadcast_to");
  });
}

}  // namespace

extern const CudaKernel cuda_broadcast_to{"broadcast_to", make};

}  // namespace thimble
