// resample: every pixel from what it is made of.
#include "backend/cpu/convolve/resampling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  resample_rows(args, begin, end, false);
}

}  // namespace

extern const CpuKernel cpu_resample{"resample", resampling<loop>};

}  // namespace thimble
