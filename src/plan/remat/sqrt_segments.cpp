// sqrt_segments: k segments of about equal bytes, only segment inputs kept; each segment is computed
// again when its backward pass comes. O(sqrt n) memory for one more forward pass.
#include <algorithm>
#include <cmath>
#include <set>

#include "plan/policy.h"
#include "plan/segments.h"

namespace thimble {
namespace {

std::vector<size_t> equal_starts(const std::vector<Block>& blocks, size_t segments) {
  double total = 0;
  for (const Block& block : blocks) total += static_cast<double>(block.made.count);
  std::vector<size_t> starts;
  double sum = 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const double due = total * static_cast<double>(starts.size() + 1) / static_cast<double>(segments);
    if (b > 0 && sum >= due) starts.push_back(b);
    sum += static_cast<double>(blocks[b].made.count);
  }
  return starts;
}

std::vector<Schedule> candidates(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  // The best k is near sqrt(n) but for constants that depend on the net: the exact arena decides.
  const double root = std::sqrt(static_cast<double>(blocks.size()));
  std::set<size_t> tries;
  for (const double factor : {0.5, 0.71, 1.0, 1.41, 2.0}) {
    tries.insert(std::max<size_t>(1, static_cast<size_t>(root * factor + 0.5)));
  }
  std::vector<Schedule> schedules;
  for (const size_t segments : tries) {
    schedules.push_back(schedule_segments(pass, blocks, equal_starts(blocks, segments)));
  }
  return schedules;
}

Schedule schedule(const PlanRequest& request) {
  return choose_schedule(request, candidates(request));
}

}  // namespace

extern const Policy policy_sqrt_segments;
const Policy policy_sqrt_segments{"sqrt_segments", "about sqrt(n) segments, only their inputs kept",
                                  schedule, candidates};

}  // namespace thimble
