// light_conv(x [N,T,C], w [H,K] [, lengths] [, rng]) -> y [N,T,C] (Wu et al. 2019): see
// time_conv_geometry.h.
// Nothing is saved: the gradient softmaxes w again.
#include "ops/convolve/time_conv.h"

namespace thimble {

using Op = TimeConvOp<true>;

extern const OpDef op_light_conv;
const OpDef op_light_conv{
    .name = "light_conv",
    .summary = "a convolution over time with softmaxed kernels that channels share",
    .infer = Op::infer,
    .gradient = Op::gradient,
    .reference = Op::reference,
    .reference_workspace = Op::reference_workspace,
    .work = Op::work,
    .samples = Op::samples,
};

}  // namespace thimble
