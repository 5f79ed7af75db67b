// Profiling before a choice. The times of unmeasured kernels are modelled, so of many candidates
// the one with the most optimistic models would win. First we profile the kernels of the candidates
// with the best lower bounds. Then we select again and profile the winner and its close rivals,
// until nearly all of the winner's time is measured or the time limit is reached.
#pragma once

#include "select/technique_selector.h"

namespace thimble {

// Times the kernels of the requested step, unless a tenth of its time is measured already. `part`:
// of the seconds left. Kernels that take more memory than the budget stay modelled. For a
// tight budget, the kernels of smaller micro-batches are timed.
void profile_requested(Step& requested, std::optional<Bytes> budget, double part);

// The measured part of a step's time without recomputation.
struct MeasuredPart {
  double part = 1;                    // measured, or impossible to measure
  std::vector<KernelUse> unmeasured;  // kernels that take most time first
};
MeasuredPart measured_part(const Step& step);

// Profiles as above. From then on the selector chooses by the new times.
void refine_with_profile(TechniqueSelector& selector, Bytes budget, Machine& machine);

}  // namespace thimble
