// Subcommands that are started as several ranks.
#pragma once

#include "cli/options.h"
#include "comm/world.h"

namespace thimble {

// Runs the command as one of the ranks that were started, or alone (null). A failure of one rank is
// told to all. A failure of all ranks is reported by the first.
int run_among_ranks(const std::function<int(World* world)>& command);

}  // namespace thimble
