// thimble plan --sweep: the frontier of memory and time, every policy on the same graph.
#pragma once

#include <string>

#include "pipeline/pipeline.h"

namespace thimble {

// Plans with every policy, and with `optimal` over budgets from its floor to everything kept.
// Prints a table and a plot, or JSON; writes a picture when `picture` names a file.
int sweep(const Recipe& recipe, bool json, const std::string& picture);

}  // namespace thimble
