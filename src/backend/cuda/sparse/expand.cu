// expand: one launch; see packed_weight.cuh.
#include "backend/cuda/sparse/packed_weight.cuh"

namespace thimble {
namespace {

template <class T>
__global__ void expand_pool(const T* pool, PackedWeight weight, T* dense) {
  walk_chunk(weight, [&](int64_t element, bool one, int64_t place) {
    if (element < weight.elements) dense[element] = one ? pool[place] : narrow<T>(0);
  });
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.outputs[0].dtype)) return nullptr;
  const PackedGrid grid = packed_grid(s.outputs[0].elements(), device);
  return own_kernel([&device, grid](const KernelArgs& args) {
    const PackedWeight weight = {args.inputs[2].as<uint8_t>(), args.inputs[1].as<int64_t>(),
                                 args.outputs[0].elements(), grid.tiles_per_block};
    with_device_type(args.outputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      expand_pool<<<grid.blocks, kBlockThreads, 0, device.stream>>>(args.inputs[0].as<T>(), weight,
                                                                    args.outputs[0].as<T>());
    });
    check_launch("expand");
  });
}

}  // namespace

extern const CudaKernel cuda_expand{"expand", make};

}  // namespace thimble
