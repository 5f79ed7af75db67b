// The forward pass as a chain of blocks. A cut is a place in the forward order that few bytes
// cross. Everything after it can be computed from the values that cross it.
//
//   x ─▶ [ block 0 ] ─▶ cut 0 ─▶ [ block 1 ] ─▶ cut 1 ─▶ ... ─▶ [ block n-1 ]
//
// A residual net is cut between its blocks, where one tensor crosses; an unrolled recurrent net
// between time steps, where the states of all layers cross.
#pragma once

#include <vector>

#include "plan/schedule/recompute.h"

namespace thimble {

struct Block {
  int begin = 0;  // positions [begin, end) of the forward pass
  int end = 0;
  std::vector<ValueId> enters;  // values crossing the cut before it (not sources)
  Bytes entering;               // the bytes of `enters`
  Bytes made;                   // all results of its nodes, without views
  double seconds = 0;           // of its nodes
  double flops = 0;
  size_t kind = 0;  // equal for blocks of the same ops, shapes and marks
};

std::vector<Block> cut_into_blocks(const ForwardPass& pass, const Costs& costs);

// By position: the bytes of the values that cross the cut after it.
std::vector<Bytes> crossing_bytes(const ForwardPass& pass);

}  // namespace thimble
