// chen_budget: the budgeted plan of Chen et al. 2016. Walks the forward pass adding up output
// sizes; at a cut where the sum has passed b, it keeps the values that cross the cut and starts
// anew. b is searched: b = 0 (every cut) gives x (bytes kept) and y (largest segment). Then it
// tries b = sqrt(x y) and a grid around that; the exact arena decides.
#include <algorithm>
#include <cmath>

#include "plan/policy.h"
#include "plan/schedule/segments.h"

namespace thimble {
namespace {

struct Walk {
  std::vector<size_t> starts;
  double kept = 0;     // x
  double largest = 0;  // y, the trailing segment included
};

Walk walk(const std::vector<Block>& blocks, double budget) {
  Walk result;
  double sum = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (b > 0 && sum > budget) {
      result.starts.push_back(b);
      result.kept += static_cast<double>(blocks[b].entering.count);
      result.largest = std::max(result.largest, sum);
      sum = 0;
    }
    sum += static_cast<double>(blocks[b].made.count);
  }
  result.largest = std::max(result.largest, sum);
  return result;
}

std::vector<Schedule> candidates(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  const Walk every = walk(blocks, 0);
  const double middle = std::sqrt(every.kept * every.largest);
  std::vector<Schedule> schedules;
  schedules.push_back(schedule_segments(pass, blocks, walk(blocks, middle).starts));
  constexpr int kGrid = 6;
  for (int i = 0; i < kGrid; ++i) {
    const double exponent = static_cast<double>(i) / (kGrid - 1) - 0.5;  // [b/sqrt 2, sqrt 2 b]
    const double budget = middle * std::pow(2.0, exponent);
    schedules.push_back(schedule_segments(pass, blocks, walk(blocks, budget).starts));
  }
  return schedules;
}

}  // namespace

extern const Policy policy_chen_budget =
    policy_among<candidates>("chen_budget", "the budgeted segments of Chen et al. 2016, searched");

}  // namespace thimble
