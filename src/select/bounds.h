// Lower bounds on every plan of a step, found without planning it.
#pragma once

#include <limits>
#include <vector>

#include "pipeline/step.h"
#include "plan/make_plan.h"

namespace thimble {

// The time of a step for a budget that no plan of it fits.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct Bounds {
  // A forward node whose results the backward pass reads: the time to recompute it, and the bytes
  // of its results.
  struct Kept {
    double seconds = 0;
    Bytes bytes;
  };

  ScheduleCost without_recompute;  // everything kept: its time and its live peak
  Bytes persistent;
  Bytes carried;           // other bytes kept between micro-batches: sums (gradient accumulation)
  Bytes largest_call;      // persistent + carried + inputs, results and scratch of one call
  Bytes least;             // no plan is smaller
  Bytes kept_always;       // read by the backward pass, and not recomputable
  std::vector<Kept> kept;  // cheapest to recompute first, by byte

  // A lower bound on the time of plans that may recompute.
  double least_seconds(Bytes budget) const;
};

// `last_saves`: seconds that a smaller last micro-batch saves over a full one.
Bounds bounds_of(const Step& step, double last_saves);

// The time of one micro-batch without recomputation.
double microbatch_seconds(const Step& step);

}  // namespace thimble
