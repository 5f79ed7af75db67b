// inplace: everything is computed once; an output may overwrite its input, but dead bytes are not
// reused. The second of the literature's allocation levels, to compare against.
#include "plan/policy.h"
#include "plan/schedule/recompute.h"

namespace thimble {

extern const Policy policy_inplace{"inplace",
                                   "compute once; outputs may overwrite inputs, no other reuse",
                                   schedule_without_recompute, Sharing::in_place};

}  // namespace thimble
