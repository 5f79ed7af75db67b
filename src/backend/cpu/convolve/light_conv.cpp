// light_conv: see time_conv.h.
#include "backend/cpu/convolve/time_conv.h"

namespace thimble {

extern const CpuKernel cpu_light_conv{"light_conv", make_time_conv<true>};

}  // namespace thimble
