// Liveness: the buffers of a schedule, each with its live range, and which copies of values share
// one.
//
//   call:      0      1      2      3      4
//   x          w------r------r
//   relu(x)                  w======r             in place: overwrites x's buffer at call 2
//   scratch           ws                          one call only
#pragma once

#include <vector>

#include "plan/plan.h"

namespace thimble {

struct CallBuffers {
  std::vector<int> inputs;   // buffer of each input
  std::vector<int> outputs;  // buffer of each output
  int workspace = -1;
};

struct Buffers {
  std::vector<BufferUse> uses;  // first and last call, inclusive
  std::vector<Role> roles;
  std::vector<bool> persistent;  // live across steps
  std::vector<bool> carried;     // made in `prologue` and live across microbatches
  std::vector<CallBuffers> calls;
  std::vector<int> sources;  // by ValueId: buffer of a value present at the start, or -1
};

// REQUIRES: the schedule computes every value before it is read.
Buffers assign_buffers(const Graph& graph, const Schedule& schedule, const Costs& costs,
                       Sharing sharing, int microbatches);
// Only the sizes and live ranges of these buffers, in less time.
std::vector<BufferUse> live_ranges(const Graph& graph, const Schedule& schedule, const Costs& costs,
                                   Sharing sharing, int microbatches);

// The first and one-past-last call of a phase.
struct PhaseRange {
  int begin = 0;
  int end = 0;
};
PhaseRange phase_range(const Graph& graph, const Schedule& schedule, Phase phase);

}  // namespace thimble
