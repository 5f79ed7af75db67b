// sgd_kahan_update: one pass over weight, gradient, momentum and compensation.
#include "backend/cpu/update/sgd_loop.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  sgd_range<true>(args, begin, end);
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_kahan_update(s, loop, 5); }

}  // namespace

extern const CpuKernel cpu_sgd_kahan_update;
const CpuKernel cpu_sgd_kahan_update{"sgd_kahan_update", make};

}  // namespace thimble
