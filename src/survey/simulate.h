// A step of many ranks, played through on paper: kernels that take as long as they are planned to,
// some longer than on other ranks, and collectives that begin when the last rank is there.
#pragma once

#include "plan/plan.h"

namespace thimble {

struct ClusterModel {
  int ranks = 1;
  double jitter = 0.03;  // a kernel takes up to a few times this share longer, at random
  double slowest = 1;    // one rank's kernels take this times as long
  uint64_t seed = 1;
};

struct SimulatedStep {
  double compute = 0;     // seconds of the kernels of a rank that nothing disturbs
  double in_turn = 0;     // of the step, where a rank waits for every collective
  double overlapped = 0;  // where it goes on until it needs the bytes that one works on
};

// `costs` as costs_of() has them: of collectives, the links' time included.
SimulatedStep simulate(const Graph& graph, const Costs& costs, const Plan& plan,
                       const ClusterModel& cluster);

}  // namespace thimble
