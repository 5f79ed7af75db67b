// own_part: a copy, and zeros behind the tensor's end.
#include "backend/cuda/ranks/collective.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return ranks_kernel(s, s.inputs[0].elements(), {}, device,
                      [&device](Communicator& ranks, const ShardRanges& g, const KernelArgs& args) {
                        const int64_t size = size_of(args.inputs[0].type.dtype);
                        const int64_t held = g.held(ranks.rank(), 0, g.part);
                        std::byte* const to = args.outputs[0].as<std::byte>();
                        if (held > 0) {
                          copy_on_device(
                              args.inputs[0].as<std::byte>() + g.begin(ranks.rank()) * size, to,
                              held * size, device);
                        }
                        const auto rest = static_cast<size_t>((g.part - held) * size);
                        if (rest > 0)
                          check(cudaMemsetAsync(to + held * size, 0, rest, device.stream), "zeros");
                      });
}

}  // namespace

extern const CudaKernel cuda_own_part{"own_part", make};

}  // namespace thimble
