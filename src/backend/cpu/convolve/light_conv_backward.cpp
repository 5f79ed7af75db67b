// light_conv_backward: see time_conv.h.
#include "backend/cpu/convolve/time_conv.h"

namespace thimble {

extern const CpuKernel cpu_light_conv_backward{"light_conv_backward",
                                               make_time_conv_backward<true>};

}  // namespace thimble
