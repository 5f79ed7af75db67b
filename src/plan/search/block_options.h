// What may be kept of a block's inside, and what each choice costs. Equal blocks share their
// options.
#pragma once

#include <vector>

#include "plan/schedule/chain.h"
#include "plan/search/search_limits.h"

namespace thimble {

// One choice for a block: a set of inner values kept from the forward pass to the backward pass.
struct BlockOption {
  std::vector<int> kept;  // outputs kept, counted from the block's first (see inner_values)
  Bytes kept_bytes;
  // The block is run again to get at what leaves it, as part of a longer stretch:
  double replay_seconds = 0;  // then
  Bytes replay_bytes;         // and what stays of its inside (results of costly ops)
  // Its backward pass computes again what is still missing:
  double after_replay_seconds = 0;
  double alone_seconds = 0;  // the same when the block was not run again before
  Bytes after_replay_bytes;  // room for that, and for gradients
  Bytes alone_bytes;
};

// The outputs of a block's nodes, in order: how options name values in every block of a kind.
std::vector<ValueId> inner_values(const ForwardPass& pass, const Block& block);

// Options by block kind, from "keep everything" to "keep nothing", none worse than another in both
// bytes and time.
std::vector<BlockOption> block_options(const ForwardPass& pass, const Costs& costs,
                                       const std::vector<Block>& blocks, size_t index,
                                       const SearchLimits& limits = {});

}  // namespace thimble
