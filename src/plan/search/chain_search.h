// Dynamic programming over a chain of blocks: where segments end, and which inner values each block
// keeps. The result is a Pareto frontier of memory against time.
#pragma once

#include <vector>

#include "plan/search/block_options.h"
#include "plan/search/search_limits.h"

namespace thimble {

struct BlockChoice {
  int option = 0;             // of the block's kind
  bool ends_segment = false;  // the inputs of the next block are kept
};

struct ChainPoint {
  std::vector<BlockChoice> choices;  // by block
  Bytes peak;                        // by the model below
  double seconds = 0;                // of recomputation
};

// `options[b]` are the options of block b. The points, from most memory to least, none worse than
// another in both. They do not depend on any budget. The model:
//
//   in use while segment s goes backward =
//     kept by all segments up to s  +  recomputed by its replay  +  needs of its last block
std::vector<ChainPoint> chain_frontier(const std::vector<Block>& blocks,
                                       const std::vector<const std::vector<BlockOption>*>& options,
                                       const SearchLimits& limits = {});

}  // namespace thimble
