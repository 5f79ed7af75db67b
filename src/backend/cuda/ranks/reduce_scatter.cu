// reduce_scatter: pieces to all, each rank's part summed there.
#include "backend/cuda/ranks/collective.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype)) return nullptr;
  return ranks_kernel(s, s.inputs[0].elements(), s.op->reference_workspace(s), device,
                      [&device](Communicator& ranks, const ShardRanges& g, const KernelArgs& args) {
                        with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
                          using T = typename decltype(tag)::type;
                          sum_own_part(ranks, g, args.inputs[0].as<T>(), args.outputs[0].as<T>(),
                                       args.adds_into(0), PartPadding::zeros, args.workspace,
                                       summing_on<T>(device));
                        });
                      });
}

}  // namespace

extern const CudaKernel cuda_reduce_scatter{"reduce_scatter", make};

}  // namespace thimble
