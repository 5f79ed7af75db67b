// dynamic_conv_backward: see time_conv.h.
#include "backend/cpu/convolve/time_conv.h"

namespace thimble {

extern const CpuKernel cpu_dynamic_conv_backward{"dynamic_conv_backward",
                                                 make_time_conv_backward<false>};

}  // namespace thimble
