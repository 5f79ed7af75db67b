// Long-lived buffers first, each at the lowest offset that is free throughout its life: what
// forward keeps for backward forms a stack, and transients lie on top of it.
#include "plan/layout/place_in_order.h"
#include "plan/packer.h"

namespace thimble {
namespace {

Layout pack(std::span<const BufferUse> buffers, Bytes good_enough) {
  return pack_by_parts(buffers, good_enough, [](const Part& part, int64_t) {
    return place_in_order(part, order_by_lifetime(part)).offsets;
  });
}

}  // namespace

extern const Packer packer_greedy_by_lifetime;
const Packer packer_greedy_by_lifetime{
    .name = "greedy_by_lifetime",
    .summary = "long-lived buffers first, each at the lowest free offset",
    .pack = pack,
};

}  // namespace thimble
