// A choice by measured times. A kernel that nobody measured is modelled, and of many candidates the one
// whose models flatter it most would win. So what looks best is measured, and looked for again; then what
// is about to be chosen, with what is close behind it, and the choice is made again: until nearly all that
// it takes was measured, or the time for it is spent.
#pragma once

#include "fit/first_times.h"
#include "fit/fit.h"

namespace thimble {

// Of the time that a step takes, everything computed once.
struct MeasuredPart {
  double part = 1;                    // that was measured, or cannot be
  std::vector<KernelUse> unmeasured;  // what takes most of the rest first
};
MeasuredPart measured_part(const FitStep& step, Backend& backend, const FirstTimes& times);

// As good as all of it.
inline constexpr double kMeasured = 0.95;

// From here on `fit` chooses by what was measured.
void measure_choice(Fit& fit, Bytes budget, FirstTimes& times);

}  // namespace thimble
