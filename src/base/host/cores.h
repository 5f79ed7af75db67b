// How many processors this process may really use: those it is bound to, less what a container's
// quota takes away.
#pragma once

#include <string>

namespace thimble {

// At least 1. A quota of one and a half processors counts as two: one thread would leave a third of
// it unused.
int usable_cores();

// The quota of the control group that `root`/proc/self/cgroup names, its parents' too, in
// processors; 0: none, or the system does not tell. Both versions of control groups are read.
double processor_quota(const std::string& root = "");

}  // namespace thimble
