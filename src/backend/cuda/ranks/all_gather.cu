// all_gather: this rank's part to its place, then parts to all.
#include "backend/cuda/ranks/collective.cuh"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  return gather_kernel(s, 0, device);
}

}  // namespace

extern const CudaKernel cuda_all_gather{"all_gather", make};

}  // namespace thimble
