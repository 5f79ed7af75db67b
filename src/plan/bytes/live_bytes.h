// Live bytes call by call: sums over ranges of calls, and the most of a range.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// By call, up to the last that a buffer lives at: the sum of the (aligned) sizes that live then.
// REQUIRES: calls count from 0.
std::vector<Bytes> live_by_call(std::span<const BufferUse> buffers);
// The largest of these sums, as live_peak() finds it, in time that is linear in buffers and calls.
Bytes most_live(std::span<const BufferUse> buffers);

// A binary tree over the calls. Both functions take ranges that are inclusive and not empty, and time
// that is logarithmic in the number of calls.
class LiveBytes {
 public:
  explicit LiveBytes(const std::vector<Bytes>& by_step);

  void add(int first, int last, Bytes bytes);
  Bytes most(int first, int last) const;

 private:
  struct Range {
    int first = 0;
    int last = 0;
  };

  void add(size_t at, Range here, Range range, int64_t bytes);
  int64_t most(size_t at, Range here, Range range) const;

  int leaves_ = 1;
  std::vector<int64_t> most_;   // by tree node: in its range, `added_` of the nodes above apart
  std::vector<int64_t> added_;  // by tree node: to all of its range
};

}  // namespace thimble
