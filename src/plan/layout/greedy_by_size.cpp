// Large buffers first, each at the lowest offset that is free throughout its life.
#include "plan/layout/place_in_order.h"
#include "plan/packer.h"

namespace thimble {

extern const Packer packer_greedy_by_size{
    .name = "greedy_by_size",
    .summary = "large buffers first, each at the lowest free offset",
    .pack = pack_in_order<order_by_size>,
};

}  // namespace thimble
