// Subcommands that are started as several ranks.
#pragma once

#include "cli/options.h"
#include "comm/world.h"

namespace thimble {

// Runs the command as one of the ranks that were started, or alone (null). What goes wrong on one rank is
// said to all; what goes wrong on all of them, the first one says.
int run_among_ranks(const std::function<int(World* world)>& command);

}  // namespace thimble
