// light_conv_backward(x [N,T,C], w [H,K], dy like x [, lengths] [, rng]) -> (dx, dw); attrs of
// light_conv. See time_conv_geometry.h.
#include "ops/convolve/time_conv.h"

namespace thimble {

using Op = TimeConvOp<true>;

extern const OpDef op_light_conv_backward;
const OpDef op_light_conv_backward{
    .name = "light_conv_backward",
    .summary = "gradient of light_conv",
    .infer = Op::infer_backward,
    .reference = Op::reference_backward,
    .reference_workspace = Op::reference_backward_workspace,
    .work = Op::work_backward,
    .samples = Op::samples_backward,
    .reading = [](const Attrs&,
                  size_t input) { return input == 1 ? Reading::curved : Reading::linear; },
    .accumulates = 3,
};

}  // namespace thimble
