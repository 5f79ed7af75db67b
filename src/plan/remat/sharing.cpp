// sharing: keep_all under the name that the literature's comparisons give it. The third of the
// allocation levels none, inplace, sharing.
#include "plan/policy.h"
#include "plan/schedule/recompute.h"

namespace thimble {

extern const Policy policy_sharing{
    "sharing", "the same as keep_all: compute once, in place, bytes of dead values reused",
    schedule_without_recompute};

}  // namespace thimble
