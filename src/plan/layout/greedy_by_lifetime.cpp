// Long-lived buffers first, each at the lowest offset that is free throughout its life: what
// forward keeps for backward forms a stack, and transients lie on top of it.
#include "plan/layout/place_in_order.h"
#include "plan/packer.h"

namespace thimble {

extern const Packer packer_greedy_by_lifetime{
    .name = "greedy_by_lifetime",
    .summary = "long-lived buffers first, each at the lowest free offset",
    .pack = pack_in_order<order_by_lifetime>,
};

}  // namespace thimble
