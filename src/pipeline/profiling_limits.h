// Every threshold of profiling: kernels are timed before a plan is chosen by their times. Each has
// its reason (2026-11-16). Unlike a search for a plan, profiling is bounded by seconds: it measures.
#pragma once

#include <cstddef>

namespace thimble {

struct ProfilingLimits {
  double seconds = 4;          // of timing in a command; a kernel that has begun is completed
  double least_seconds = 0.1;  // with less time left, no kernel is timed

  // The part of the seconds for the step as requested: times of other candidates are scaled by
  // what is measured of it. Of the seconds left, each round of candidates takes a half.
  double requested_part = 0.4, round_part = 0.5;
  // A part of a step's time that, once measured, is enough to scale the rest by. A single kernel
  // that another net shares is not enough.
  double enough_known = 0.1;
  // A step is measured when nearly all of its time is.
  double measured = 0.95;
  // A budget is tight when less than this part of a step's kernels has room in it. The kernels of
  // smaller micro-batches are timed then.
  double with_room = 0.75;

  // A kernel that the model says takes more than this part of the seconds is not timed: others of its op
  // scale it. Products of a net of many billions of weights take seconds each. (2026-11-19)
  double longest_part = 0.1;
  // Nor one that takes more than this part of the memory that is free.
  double free_part = 0.25;

  size_t at_once = 4;            // candidates profiled between two selections
  double processor_seconds = 8;  // of selecting: no selection begins that would end later
};
inline constexpr ProfilingLimits kProfilingLimits;

}  // namespace thimble
