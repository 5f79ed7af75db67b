// A plan as pictures for papers: calls to the right, memory upwards, coloured by role.
#pragma once

#include <string>

#include "plan/plan.h"

namespace thimble {

// Complete SVG documents. One rectangle per stay of a tensor in the arena, at its addresses.
std::string plan_svg(const Graph& graph, const Plan& plan);
// Live bytes at every call, one role upon the other, and the budget as a line (0: none).
std::string memory_svg(const Graph& graph, const Plan& plan, Bytes budget = {});

}  // namespace thimble
