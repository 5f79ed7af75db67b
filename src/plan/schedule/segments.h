// Segments (activation checkpointing): runs of blocks of which only the inputs are kept.
#pragma once

#include <vector>

#include "plan/policy.h"
#include "plan/schedule/chain.h"

namespace thimble {

// The chain cut into `segments` runs of about equal bytes: the first block of each but the first.
std::vector<size_t> equal_starts(const std::vector<Block>& blocks, size_t segments);

// Keeps the inputs of the blocks in `starts` and recomputes everything else, segment by segment.
// The last segment is not recomputed: its values are live when its backward pass begins.
Schedule schedule_segments(const ForwardPass& pass, const std::vector<Block>& blocks,
                           const std::vector<size_t>& starts);

// The schedule with the smallest arena. With a budget: the fastest by predicted time of those that
// fit, or else the smallest.
Schedule choose_schedule(const PlanRequest& request, std::vector<Schedule> schedules);
// A policy that chooses among kCandidates by choose_schedule().
template <std::vector<Schedule> (*kCandidates)(const PlanRequest& request)>
constexpr Policy policy_among(std::string_view name, std::string_view summary) {
  return {
      .name = name,
      .summary = summary,
      .schedule =
          [](const PlanRequest& request) { return choose_schedule(request, kCandidates(request)); },
      .candidates = kCandidates};
}

}  // namespace thimble
