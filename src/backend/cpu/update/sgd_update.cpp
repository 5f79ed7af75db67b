// sgd_update: one pass over weight, gradient and momentum.
#include "backend/cpu/update/sgd_loop.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  sgd_range<false>(args, begin, end);
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_update(s, loop, 4); }

}  // namespace

extern const CpuKernel cpu_sgd_update;
const CpuKernel cpu_sgd_update{"sgd_update", make};

}  // namespace thimble
