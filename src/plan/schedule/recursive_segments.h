// Recursive checkpointing: the forward pass, or a segment of it, is halved (or cut into more parts)
// again and again.
#pragma once

#include <vector>

#include "plan/schedule/chain.h"

namespace thimble {

// Cuts the chain into `segments` equal runs of blocks whose inputs are kept. Inside a run only the
// input of its middle is kept, then of the middle of its second half, and so on. In the backward
// pass the first half is recomputed in the same way. One segment: O(log n) memory, O(n log n)
// forward work.
//
// A fan-out of k makes k cuts instead of one in the middle, and so k + 1 parts:
//
//   k = 1   [ . . . . . . . . | . . . . | . . | . . ]     g(n) = 1 + g(n / 2)
//   k = 3   [ . . . . | . . . . | . . . . | . | . | . | . ]     g(n) = k + g(n / (k + 1))
//
// which holds k log n / log(k + 1) cuts at once, and runs every block about log n / log(k + 1)
// times.
class RecursiveSegments final : public Retention {
 public:
  RecursiveSegments(const ForwardPass& pass, const std::vector<Block>& blocks, size_t segments,
                    size_t fanout = 1);

  bool stays_after_forward(ValueId value) override { return stays(value); }
  bool stays_after_replay(ValueId value) override { return stays(value); }
  void replayed(const std::vector<int>& positions, NodeId reader) override;

 private:
  void split(size_t begin, size_t end);
  bool stays(ValueId value) const;

  const std::vector<Block>& blocks_;
  const size_t fanout_;
  std::vector<size_t> block_of_;  // by position
  std::vector<int> made_in_;      // by value: block, or -1
  std::vector<int> stamp_;        // by value: `now_` when it last crossed a chosen cut
  std::vector<bool> starts_;      // by value: enters a segment
  int now_ = 0;
  int leaf_ = 0;
};

}  // namespace thimble
