// resample: every pixel from what it is made of.
#include "backend/cpu/convolve/resampling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  resample_rows(args, begin, end, false);
}

std::unique_ptr<Kernel> make(const Signature& s) { return make_resampling(s, loop); }

}  // namespace

extern const CpuKernel cpu_resample{"resample", make};

}  // namespace thimble
