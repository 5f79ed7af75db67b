// dynamic_conv_backward(x [N,T,C], w [N,T,H*K], dy like x [, lengths] [, rng]) -> (dx, dw); attrs of
// dynamic_conv. See time_conv_geometry.h.
#include "ops/convolve/time_conv.h"

namespace thimble {

extern const OpDef op_dynamic_conv_backward =
    time_conv_backward_op("gradient of dynamic_conv", false);

}  // namespace thimble
