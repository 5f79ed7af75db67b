// light_conv(x [N,T,C], w [H,K] [, lengths] [, rng]) -> y [N,T,C] (Wu et al. 2019): see
// time_conv_geometry.h.
// Nothing is saved: the gradient softmaxes w again.
#include "ops/convolve/time_conv.h"

namespace thimble {

extern const OpDef op_light_conv =
    time_conv_op("a convolution over time with softmaxed kernels that channels share", true);

}  // namespace thimble
