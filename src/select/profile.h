// A choice by measured times. A kernel that nobody timed is modelled, and of many candidates the one whose
// models flatter it most would win. So what looks best is profiled, and looked for again; then what
// is about to be chosen, with what is close behind it, and the choice is made again: until nearly all that
// it takes was measured, or the time for it is spent.
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
