// The size of a planned step outside its arena, and in tokens.
#pragma once

#include "pipeline/pipeline.h"

namespace thimble {

// On the CPU beside the arena: the program, its libraries, a checkpoint being written, and the
// step's graph and plan.
inline constexpr Bytes kBesideArena{int64_t{64} << 20};
// A node of a step: in the graph, the costs, the plan and what runs it. Records of every further
// length have a step of their own.
inline constexpr Bytes kOfANode{int64_t{6} << 10};

// Of so many steps, the largest of which has so many nodes.
Bytes beside_arena(int64_t steps, int64_t nodes);

// Of the whole process while it trains, at most. REQUIRES: the arena is in host memory.
Bytes process_bytes(const PlannedTraining& training);

// Entries of all records of a step, of models whose loss is a mean over these (tokens); 0: others.
int64_t tokens_of_step(const PlannedTraining& training);

}  // namespace thimble
