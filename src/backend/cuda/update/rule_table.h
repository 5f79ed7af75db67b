// The kernels of one rule (ops/update/rule.h), of `update` and `update_8bit`. rule_kernels.cu.in
// becomes one source per rule.
#pragma once

#include "backend/cuda/cuda_kernel.h"

namespace thimble {

struct CudaRuleKernels {
  using Make = std::unique_ptr<Kernel> (*)(const Signature& signature, CudaDevice& device);
  std::string_view rule;
  Make update, update_8bit;
};

// The generated table of rules with kernels (definitions live in the build folder).
std::span<const CudaRuleKernels* const> all_cuda_rules();
// Of the rule of an update's attrs; null: there is none.
const CudaRuleKernels* cuda_rule(const Signature& signature);

}  // namespace thimble
