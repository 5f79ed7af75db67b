// Memory against time, for every policy: a table, a plot in the terminal, a picture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace thimble {

struct FrontierPoint {
  std::string policy;
  Bytes budget;  // 0: none was given
  Bytes arena;
  double milliseconds = 0;
  double extra_flops_ratio = 0;
};

// The policy that goes by a budget: its points are a line in the picture.
inline constexpr std::string_view kBudgetPolicy = "optimal";

// One line a point, as given.
std::string frontier_table(const std::vector<FrontierPoint>& points);
// Letters for policies over a grid: arena to the right, time upward.
std::string frontier_plot(const std::vector<FrontierPoint>& points);
std::string frontier_svg(const std::string& title, const std::vector<FrontierPoint>& points);

}  // namespace thimble
