// update_8bit: one pass, a warp for a block of 256, by the rule's kernels; see rule_kernels.cuh.
#include "backend/cuda/update/rule_table.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const CudaRuleKernels* const kernels = cuda_rule(s);
  return kernels != nullptr ? kernels->update_8bit(s, device) : nullptr;
}

}  // namespace

extern const CudaKernel cuda_update_8bit{"update_8bit", make};

}  // namespace thimble
