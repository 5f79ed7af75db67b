// update_8bit: every thread takes a range of the blocks.
#include "backend/cpu/update/rule_kernels.h"

namespace thimble {
namespace {

std::unique_ptr<Kernel> make(const Signature& s) {
  const bool kahan = is_compensated(s.attrs);
  if (kahan && !is_sixteen_bit(s.outputs[0].dtype)) return nullptr;
  const UpdateRule& rule = *find_update_rule(s.attrs.text("rule", ""));
  const CpuRuleKernels& kernels = cpu_rule(rule);
  return make_state_blocks(s, kahan ? kernels.update_8bit_kahan : kernels.update_8bit,
                           static_cast<size_t>(update_layout(rule, true, kahan).own));
}

}  // namespace

extern const CpuKernel cpu_update_8bit{"update_8bit", make};

}  // namespace thimble
