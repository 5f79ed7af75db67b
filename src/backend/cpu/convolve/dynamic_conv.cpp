// dynamic_conv: see time_conv.h.
#include "backend/cpu/convolve/time_conv.h"

namespace thimble {

extern const CpuKernel cpu_dynamic_conv{"dynamic_conv", make_time_conv<false>};

}  // namespace thimble
