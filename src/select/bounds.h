// Lower bounds on every plan of a step, found without planning it.
#pragma once

#include <limits>
#include <vector>

#include "pipeline/step.h"
#include "plan/make_plan.h"

namespace thimble {

// Seconds of a step that no plan of it brings within the budget.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct Bounds {
  // A forward node whose results the backward pass reads: what not computing it again keeps.
  struct Kept {
    double seconds = 0;
    Bytes bytes;
  };

  ScheduleCost
      without_recompute;  // everything computed once: its time, and what is live at its fullest
  Bytes persistent;
  Bytes carried;           // from microbatch to microbatch, beside those
  Bytes largest_call;      // with both: of any call by itself
  Bytes least;             // no plan is smaller
  Bytes kept_always;       // of what the backward pass reads and nobody can compute again
  std::vector<Kept> kept;  // cheapest byte first

  // Of plans that recompute.
  double least_seconds(Bytes budget) const;
};

// `last_saves`: seconds, where the last microbatch is smaller than the others.
Bounds bounds_of(const Step& step, double last_saves);

// Of a microbatch, everything computed once.
double each_seconds(const Step& step);

}  // namespace thimble
