// light_conv_backward(x [N,T,C], w [H,K], dy like x [, lengths] [, rng]) -> (dx, dw); attrs of
// light_conv. See time_conv_geometry.h.
#include "ops/convolve/time_conv.h"

namespace thimble {

extern const OpDef op_light_conv_backward = time_conv_backward_op("gradient of light_conv", true);

}  // namespace thimble
