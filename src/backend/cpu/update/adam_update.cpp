// adam_update: one pass over weight, gradient and both moments.
#include "backend/cpu/update/adam_loop.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  adam_range<false>(args, begin, end);
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_update(s, loop, 6, 4); }

}  // namespace

extern const CpuKernel cpu_adam_update;
const CpuKernel cpu_adam_update{"adam_update", make};

}  // namespace thimble
