// Schedules of the chain search's frontier.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plan/search/chain_search.h"

namespace thimble {

class ChainPlans {
 public:
  ChainPlans(const ForwardPass& pass, const Costs& costs, const std::vector<Block>& blocks,
             const SearchLimits& limits);

  // Points of the frontier, from most memory to least (by the search's model).
  size_t size() const { return frontier_.size(); }
  Bytes peak(size_t point) const { return frontier_[point].peak; }
  Schedule schedule(size_t point) const;

 private:
  const ForwardPass& pass_;
  const std::vector<Block>& blocks_;
  std::map<std::pair<size_t, size_t>, std::vector<BlockOption>> kinds_;  // by kind, next kind
  std::vector<const std::vector<BlockOption>*> options_;                 // by block
  std::vector<ChainPoint> frontier_;
};

}  // namespace thimble
