// broadcast: what one rank has, for all of them.
#include "backend/cuda/ranks/collective.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return ranks_kernel(s, s.inputs[0].elements(), {}, device,
                      [&device](Communicator& ranks, const ShardRanges&, const KernelArgs& args) {
                        const int64_t bytes = args.inputs[0].type.bytes().count;
                        std::byte* const to = args.outputs[0].as<std::byte>();
                        if (to != args.inputs[0].as<std::byte>()) {
                          copy_on_device(args.inputs[0].as<std::byte>(), to, bytes, device);
                        }
                        ranks.broadcast({to, static_cast<size_t>(bytes)},
                                        static_cast<int>(args.attrs->integer("root", 0)));
                      });
}

}  // namespace

extern const CudaKernel cuda_broadcast{"broadcast", make};

}  // namespace thimble
