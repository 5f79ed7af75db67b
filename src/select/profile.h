// A choice by measured times. The time of a kernel that nobody has timed is modelled, and of many candidates
// the one with the most flattering models would win. So first the kernels of the candidates with the best
// lower bounds are profiled. Then the selection is repeated, and the winner and its close rivals are
// profiled, until nearly all of the winner's time is measured or the time limit is reached.
#pragma once

#include "select/technique_selector.h"

namespace thimble {

// Times the kernels of the step as typed, in that part of the seconds left, where less than a tenth of its
// time was measured before. Kernels that take more memory than the budget stay modelled; of a tight one,
// those of smaller microbatches are timed.
void profile_requested(Step& requested, std::optional<Bytes> budget, double part);

// Of the time that a step takes, everything computed once.
struct MeasuredPart {
  double part = 1;                    // that was measured, or cannot be
  std::vector<KernelUse> unmeasured;  // what takes most of the rest first
};
MeasuredPart measured_part(const Step& step);

// As good as all of it.
inline constexpr double kMeasured = 0.95;

// From here on the selector chooses by what was measured.
void refine_with_profile(TechniqueSelector& selector, Bytes budget, Machine& machine);

}  // namespace thimble
