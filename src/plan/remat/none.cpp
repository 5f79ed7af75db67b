// none: everything is computed once, and every value has bytes of its own. The baseline against
// which the literature states its savings; nobody should train with it.
#include "plan/policy.h"
#include "plan/schedule/recompute.h"

namespace thimble {

extern const Policy policy_none{"none", "compute once, every value in bytes of its own: a baseline",
                                schedule_without_recompute, Sharing::none};

}  // namespace thimble
