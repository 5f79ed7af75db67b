// adam_kahan_update: one pass over weight, gradient, both moments and compensation.
#include "backend/cpu/update/adam_loop.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  adam_range<true>(args, begin, end);
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_kahan_update(s, loop, 7, 4); }

}  // namespace

extern const CpuKernel cpu_adam_kahan_update;
const CpuKernel cpu_adam_kahan_update{"adam_kahan_update", make};

}  // namespace thimble
