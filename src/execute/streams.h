// Calls of a program that may run concurrently: neither touches a byte that the other writes.
//
// A plan's order is one of many that give the same bits. A device with several queues ("streams")
// runs calls of different streams in any order, unless one has to wait for another:
//
//   stream 0   conv backward data ────────────▶ batch norm backward ─▶ ...
//   stream 1   conv backward weights ─▶ update ─▶ ...
#pragma once

#include <cstdint>
#include <vector>

namespace thimble {

struct ByteRange {
  int64_t begin = 0, end = 0;
};

struct CallUse {
  std::vector<ByteRange> reads, writes;
  double seconds = 0;  // an estimate of its time
};

// Whether one writes bytes that the other reads or writes.
bool conflict(const CallUse& a, const CallUse& b);
// Both as one call.
void join(CallUse& call, const CallUse& other);

struct StreamCall {
  int stream = 0;
  std::vector<int> waits_for;  // calls of other streams that must end before it begins
};

// In the order of the calls. A stream waits for a call at most once, directly or through another
// stream's wait.
std::vector<StreamCall> spread_over_streams(const std::vector<CallUse>& calls, int streams);

}  // namespace thimble
