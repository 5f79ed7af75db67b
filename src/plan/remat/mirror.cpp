// mirror: mirror counts (see plan/schedule/mirror_counts.h) from segments, and from segments of
// segments, with cheap ops mirrored like the rest or once more. About sqrt(n) segments need least
// memory with one level, about cbrt(n) of cbrt(n) with two; the exact arena decides.
#include <cmath>
#include <set>

#include "plan/policy.h"
#include "plan/schedule/mirror_counts.h"
#include "plan/schedule/segments.h"

namespace thimble {
namespace {

// `parts` segments, each of `parts_of_part` (1: not cut again).
MirrorCounts nested(const ForwardPass& pass, const std::vector<Block>& blocks, size_t parts,
                    size_t parts_of_part) {
  const std::vector<size_t> inner = equal_starts(blocks, parts * parts_of_part);
  if (parts_of_part == 1) return mirror_segments(pass, blocks, {inner});
  std::vector<size_t> outer;
  for (size_t i = parts_of_part; i <= inner.size(); i += parts_of_part) {
    outer.push_back(inner[i - 1]);
  }
  return mirror_segments(pass, blocks, {outer, inner});
}

std::vector<Schedule> candidates(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  std::vector<Schedule> schedules;
  const auto offer = [&](MirrorCounts counts) {
    schedules.push_back(schedule_mirrored(pass, counts));
    mirror_cheap(pass, counts);
    schedules.push_back(schedule_mirrored(pass, counts));
  };
  offer(MirrorCounts(request.graph.values.size(), 0));
  const double count = static_cast<double>(blocks.size());
  std::set<std::pair<size_t, size_t>> tries;
  for (const double factor : {0.5, 1.0, 2.0}) {
    const auto rounded = [&](double x) {
      return static_cast<size_t>(std::max(1.0, x * factor + 0.5));
    };
    tries.emplace(rounded(std::sqrt(count)), 1);
    tries.emplace(rounded(std::cbrt(count)), rounded(std::cbrt(count)));
  }
  for (const auto& [parts, parts_of_part] : tries) {
    offer(nested(pass, blocks, parts, parts_of_part));
  }
  return schedules;
}

}  // namespace

extern const Policy policy_mirror = policy_among<candidates>(
    "mirror",
    "mirror counts of Chen et al. 2016: segments, segments of segments, cheap ops repeated");

}  // namespace thimble
