// log_recursive: recursive halving of the whole forward pass (see plan/halving.h).
#include "plan/halving.h"
#include "plan/policy.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  Halving retention(pass, blocks, 1);
  return schedule_with(pass, retention);
}

}  // namespace

extern const Policy policy_log_recursive;
const Policy policy_log_recursive{"log_recursive", "recursive halving: O(log n) memory, O(n log n) work",
                                  schedule};

}  // namespace thimble
