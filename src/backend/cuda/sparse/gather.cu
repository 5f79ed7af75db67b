// gather: one launch; see packed_weight.cuh. If it writes and does not add, blocks also share the
// zeros around the weight's part of the pool, and each counts that part's end itself. Then there
// may be more blocks than the weight has chunks.
#include "backend/cuda/sparse/packed_weight.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void gather_dense(const T* dense, PackedWeight weight, T* pool, int64_t total,
                             bool add) {
  if (weight.has_chunk(blockIdx.x)) {
    walk_chunk(weight, [&](int64_t element, bool one, int64_t place) {
      if (one) store(pool + place, widen(dense[element]), add);
    });
  }
  if (add) return;
  const int64_t first = *weight.first;
  const int64_t last = first + ones_between(weight, 0, weight.words());
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  const int64_t thread = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (int64_t i = thread; i < first; i += threads) pool[i] = narrow<T>(0);
  for (int64_t i = last + thread; i < total; i += threads) pool[i] = narrow<T>(0);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const PackedGrid grid = packed_grid(s.inputs[0].elements(), device);
  return own_kernel([&device, grid](const KernelArgs& args) {
    const PackedWeight weight = {args.inputs[2].as<uint8_t>(), args.inputs[1].as<int64_t>(),
                                 args.inputs[0].elements(), grid.tiles_per_block};
    const unsigned blocks =
        args.adds_into(0)
            ? grid.blocks
            : std::max(grid.blocks, blocks_for(args.outputs[0].elements() / 8, device));
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      gather_dense<<<blocks, kBlockThreads, 0, device.stream>>>(
          args.inputs[0].as<T>(), weight, args.outputs[0].as<T>(), args.outputs[0].elements(),
          args.adds_into(0));
    });
    check_launch("gather");
  });
}

}  // namespace

extern const CudaKernel cuda_gather{"gather", make};

}  // namespace thimble
