// Live bytes by call: additions to a range of calls, and the maximum over a range.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// By call, up to the last at which a buffer is live: the sum of live (aligned) sizes. REQUIRES:
// calls count from 0.
std::vector<Bytes> live_by_call(std::span<const BufferUse> buffers);
// The largest of these sums, equal to live_peak(), in time linear in buffers and calls.
Bytes most_live(std::span<const BufferUse> buffers);

// A segment tree over the calls. Ranges are inclusive and not empty. Both functions take
// logarithmic time.
class LiveBytes {
 public:
  explicit LiveBytes(const std::vector<Bytes>& by_call);

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
  std::vector<int64_t> most_;   // by tree node: its maximum, without `added_` of the nodes above
  std::vector<int64_t> added_;  // by tree node: added to every call of its range
};

}  // namespace thimble
