// In order of birth, each buffer in the smallest hole that holds it. A second walk runs from the
// last call to the first, where what backward frees late comes early; the smaller result wins.
#include "plan/layout/best_fit_in_call_order.h"
#include "plan/packer.h"

namespace thimble {
namespace {

Layout pack(std::span<const BufferUse> buffers, Bytes good_enough) {
  return pack_by_parts(buffers, good_enough, [](const Part& part, int64_t target) {
    std::vector<int64_t> forward = best_fit_in_call_order(part, false);
    const int64_t end = highest_end(part, forward);
    if (end <= target) return forward;
    std::vector<int64_t> backward = best_fit_in_call_order(part, true);
    return highest_end(part, backward) < end ? backward : forward;
  });
}

}  // namespace

extern const Packer packer_best_fit{
    .name = "best_fit",
    .summary = "in order of birth, each in the smallest hole that holds it",
    .pack = pack,
};

}  // namespace thimble
