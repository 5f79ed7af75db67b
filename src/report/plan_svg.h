// A plan as a picture: time to the right, addresses upwards, one rectangle per stay of a tensor in
// the arena, coloured by role.
#pragma once

#include <string>

#include "plan/plan.h"

namespace thimble {

// A complete SVG document.
std::string plan_svg(const Graph& graph, const Plan& plan);

}  // namespace thimble
