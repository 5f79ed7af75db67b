// Segments: runs of blocks of which only the inputs are kept.
#pragma once

#include <vector>

#include "plan/chain.h"

namespace thimble {

// Keeps what enters the blocks in `starts`; everything else is computed again, segment by segment.
Schedule schedule_segments(const ForwardPass& pass, const std::vector<Block>& blocks,
                           const std::vector<size_t>& starts);

// Of several schedules the one with the smallest arena; with a budget, the one with the least
// predicted time among those that fit, or else the smallest.
Schedule choose_schedule(const PlanRequest& request, std::vector<Schedule> schedules);

}  // namespace thimble
