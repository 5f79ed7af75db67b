// slice: one pass over the part.
#include "backend/cuda/shape/rows.cuh"

namespace thimble {
namespace {

template <class Unit>
__global__ void take_rows(const Unit* from, Unit* to, int64_t length, int64_t whole, int64_t units,
                          bool add) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < units; i += threads) {
    const int64_t row = quotient(i, length);
    put(to + i, from[row * whole + (i - row * length)], add);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!can_move(s)) return nullptr;
  const BytePart bytes(s.inputs[0], s.outputs[0], s.attrs);
  const bool add = (s.accumulate & 1u) != 0;
  return own_kernel([&device, bytes, add](const KernelArgs& args) {
    const DType dtype = args.outputs[0].type.dtype;
    with_unit(dtype, add, bytes.unit, [&](auto tag, int64_t size) {
      using Unit = typename decltype(tag)::type;
      const int64_t length = bytes.part / size;
      const int64_t units = bytes.outer * length;
      take_rows<<<blocks_for(units, device), kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<Unit>() + bytes.begin / size, args.outputs[0].as<Unit>(), length,
          bytes.whole / size, units, add);
    });
    check_launch("slice");
  });
}

}  // namespace

extern const CudaKernel cuda_slice{"slice", make};

}  // namespace thimble
