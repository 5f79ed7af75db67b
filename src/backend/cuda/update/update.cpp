// update: one pass, by the rule's kernels; see rule_kernels.cuh.
#include "backend/cuda/update/rule_table.h"

namespace thimble {

const CudaRuleKernels* cuda_rule(const Signature& s) {
  for (const CudaRuleKernels* kernels : all_cuda_rules()) {
    if (kernels->rule == s.attrs.text("rule", "")) return kernels;
  }
  return nullptr;
}

namespace {

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const CudaRuleKernels* const kernels = cuda_rule(s);
  return kernels != nullptr ? kernels->update(s, device) : nullptr;
}

}  // namespace

extern const CudaKernel cuda_update{"update", make};

}  // namespace thimble
