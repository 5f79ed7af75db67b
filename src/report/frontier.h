// Memory against time, for every policy: a table, a plot in the terminal, a picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace thimble {

struct FrontierPoint {
  std::string policy;
  Bytes budget;  // 0: none was given
  Bytes arena;
  double milliseconds = 0;
  double extra_flops_ratio = 0;
};

// Milliseconds that a MiB more of budget would save in a plan of that arena: along the frontier of
// the policy that plans for a budget, to its next faster plan. 0: none.
double price_of_memory(const std::vector<FrontierPoint>& points, const FrontierPoint& chosen);

// One line a point, as given.
std::string frontier_table(const std::vector<FrontierPoint>& points);
// Letters for policies over a grid: arena to the right, time upward.
std::string frontier_plot(const std::vector<FrontierPoint>& points);
// `chosen`, the plan at hand, in a ring.
std::string frontier_svg(const std::string& title, const std::vector<FrontierPoint>& points,
                         const std::optional<FrontierPoint>& chosen = {});

}  // namespace thimble
