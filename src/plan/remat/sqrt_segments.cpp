// sqrt_segments: k segments of about equal bytes, of which only the inputs are kept. Each segment is
// recomputed when its backward pass comes. O(sqrt n) memory for one more forward pass.
#include <algorithm>
#include <cmath>
#include <set>

#include "plan/policy.h"
#include "plan/schedule/segments.h"

namespace thimble {
namespace {

std::vector<Schedule> candidates(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  // The best k is near sqrt(n) but for constants that depend on the net: the exact arena decides.
  const double root = std::sqrt(static_cast<double>(blocks.size()));
  std::set<size_t> tries;
  for (const double factor : {0.5, 0.71, 1.0, 1.41, 2.0}) {
    tries.insert(std::max<size_t>(1, static_cast<size_t>(std::lround(root * factor))));
  }
  std::vector<Schedule> schedules;
  for (const size_t segments : tries) {
    schedules.push_back(schedule_segments(pass, blocks, equal_starts(blocks, segments)));
  }
  return schedules;
}

}  // namespace

extern const Policy policy_sqrt_segments =
    policy_among<candidates>("sqrt_segments", "about sqrt(n) segments, only their inputs kept");

}  // namespace thimble
