// keep_all: every value is computed once and kept until its last reader (marks apart). The ordinary
// plan, and the yardstick of every other.
#include "plan/policy.h"
#include "plan/schedule/recompute.h"

namespace thimble {

extern const Policy policy_keep_all{.name = "keep_all",
                                    .summary = "compute once, keep until the last reader",
                                    .schedule = schedule_without_recompute,
                                    .traits = {.keeps_all = true}};

}  // namespace thimble
