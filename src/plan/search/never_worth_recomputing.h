// Values too small to be worth recomputing: the statistics of a batch norm cost a pass over a
// tensor and take a few kilobytes.
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"
#include "plan/search/search_limits.h"

namespace thimble {

// By value: a byte of it takes many times longer to make than the average byte that the backward
// pass reads. None, unless all of them together take almost no memory.
std::vector<bool> values_never_worth_recomputing(const ForwardPass& pass, const Costs& costs,
                                                 const SearchLimits& limits = {});

// Whether the schedule recomputes any of these values.
bool repeats_any_of(const ForwardPass& pass, const std::vector<bool>& kept_values,
                    const Schedule& schedule);

// The same schedule without recomputations of these values.
Schedule keeping_all_of(const ForwardPass& pass, const std::vector<bool>& kept_values,
                        const Schedule& schedule);

}  // namespace thimble
