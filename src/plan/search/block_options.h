// Options for a block: sets of inner values that may be kept, with their memory and time. Equal
// blocks share their options.
#pragma once

#include <vector>

#include "plan/schedule/chain.h"
#include "plan/search/search_limits.h"

namespace thimble {

// One choice for a block: a set of inner values kept from the forward pass to the backward pass.
struct BlockOption {
  std::vector<int> kept;  // outputs kept, counted from the block's first (see inner_values)
  Bytes kept_bytes;
  // First replay: a run of blocks is recomputed for the values that leave each of them.
  double replay_seconds = 0;  // of this block
  Bytes replay_bytes;         // inner values (results of costly ops) that stay after it
  // Second replay: the block's backward pass recomputes inner values that are still missing.
  double after_replay_seconds = 0;
  double alone_seconds = 0;  // the same, without a first replay
  Bytes after_replay_bytes;  // room for these values, and for gradients
  Bytes alone_bytes;         // the same, without a first replay
};

// The outputs of a block's nodes, in order: how options name values in every block of a kind.
std::vector<ValueId> inner_values(const ForwardPass& pass, const Block& block);

// The options of block `index`, from "keep everything" to "keep nothing". None is worse than
// another in both bytes and time.
std::vector<BlockOption> block_options(const ForwardPass& pass, const Costs& costs,
                                       const std::vector<Block>& blocks, size_t index,
                                       const SearchLimits& limits = {});

}  // namespace thimble
