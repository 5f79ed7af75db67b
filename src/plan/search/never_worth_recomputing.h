// Values so small that computing them again never pays: the statistics of a batch norm take a pass
// over a tensor and a few kilobytes.
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"
#include "plan/search/search_limits.h"

namespace thimble {

// By value: a byte of it takes many times longer to make than a byte of what the backward pass
// needs does on average. None, unless all of them together take next to nothing.
std::vector<bool> values_never_worth_recomputing(const ForwardPass& pass, const Costs& costs,
                                                 const SearchLimits& limits = {});

// Whether the schedule computes some again.
bool repeats_any_of(const ForwardPass& pass, const std::vector<bool>& kept_values,
                    const Schedule& schedule);

// The schedule, without computing those values again.
Schedule keeping_all_of(const ForwardPass& pass, const std::vector<bool>& kept_values,
                        const Schedule& schedule);

}  // namespace thimble
