// slice_backward: one pass over the whole, zeros and all; added into, over the part only.
#include "backend/cuda/shape/rows.cuh"

namespace thimble {
namespace {

template <class Unit>
__global__ void place_rows(const Unit* from, Unit* to, int64_t length, int64_t begin, int64_t whole,
                           int64_t units) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < units; i += threads) {
    const int64_t row = quotient(i, whole);
    const int64_t at = i - row * whole - begin;
    Unit value{};
    if (at >= 0 && at < length) value = from[row * length + at];
    to[i] = value;
  }
}

template <class Unit>
__global__ void add_rows(const Unit* from, Unit* to, int64_t length, int64_t whole, int64_t units) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < units; i += threads) {
    const int64_t row = quotient(i, length);
    put(to + row * whole + (i - row * length), from[i], true);
  }
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const BytePart bytes(s.outputs[0], s.inputs[0], s.attrs);
  const bool add = (s.accumulate & 1u) != 0;
  return own_kernel([&device, bytes, add](const KernelArgs& args) {
    const DType dtype = args.outputs[0].type.dtype;
    with_unit(dtype, add, bytes.unit, [&](auto tag, int64_t size) {
      using Unit = typename decltype(tag)::type;
      const int64_t length = bytes.part / size, begin = bytes.begin / size;
      const int64_t whole = bytes.whole / size;
      const int64_t units = bytes.outer * (add ? length : whole);
      const unsigned blocks = blocks_for(units, device);
      const Unit* const from = args.inputs[0].as<Unit>();
      Unit* const to = args.outputs[0].as<Unit>();
      if (add) {
        add_rows<<<blocks, kBlockThreads, 0, device.stream>>>(from, to + begin, length, whole,
                                                              units);
      } else {
        place_rows<<<blocks, kBlockThreads, 0, device.stream>>>(from, to, length, begin, whole,
                                                                units);
      }
    });
    check_launch("slice_backward");
  });
}

}  // namespace

extern const CudaKernel cuda_slice_backward{"slice_backward", make};

}  // namespace thimble
