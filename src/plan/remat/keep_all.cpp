// keep_all: every value is computed once and kept until its last reader (marks apart). The ordinary plan, and the
// yardstick of every other.
#include "plan/policy.h"
#include "plan/recompute.h"

namespace thimble {
namespace {

Schedule schedule(const PlanRequest& request) {
  const std::vector<bool> everything(request.graph.values.size(), true);
  return schedule_keeping(ForwardPass(request.graph), everything);
}

}  // namespace

extern const Policy policy_keep_all;
const Policy policy_keep_all{"keep_all", "compute once, keep until the last reader", schedule};

}  // namespace thimble
