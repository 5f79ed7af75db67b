// log_recursive: recursive cutting of the whole forward pass (see
// plan/schedule/recursive_segments.h). The number is the fan-out: more cuts at once keep more and
// recompute less.
#include "plan/policy.h"
#include "plan/schedule/recursive_segments.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  RecursiveSegments retention(pass, blocks, 1, static_cast<size_t>(request.number));
  return schedule_with(pass, retention);
}

}  // namespace

extern const Policy policy_log_recursive{
    .name = "log_recursive",
    .summary =
        "recursive halving: O(log n) memory, O(n log n) work; log_recursive:K cuts at K places",
    .schedule = schedule,
    .number = {.meaning = "fan-out", .least = 1, .most = 1000, .usual = 1},
};

}  // namespace thimble
