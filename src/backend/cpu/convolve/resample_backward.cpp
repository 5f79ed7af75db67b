// resample_backward: every pixel from those that it is part of.
#include "backend/cpu/convolve/resampling.h"

namespace thimble {
namespace {

THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  resample_rows(args, begin, end, true);
}

}  // namespace

extern const CpuKernel cpu_resample_backward{"resample_backward", resampling<loop>};

}  // namespace thimble
