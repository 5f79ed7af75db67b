// sgd_plain_update: one pass over weight and gradient.
#include "backend/cpu/update/sgd_plain_loop.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  sgd_plain_range<false>(args, begin, end);
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_update(s, loop, 3); }

}  // namespace

extern const CpuKernel cpu_sgd_plain_update;
const CpuKernel cpu_sgd_plain_update{"sgd_plain_update", make};

}  // namespace thimble
