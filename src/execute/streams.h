// Which calls of a program can run at the same time: those that touch no byte the other writes.
//
// A plan's order is one of many that give the same bits. A device with several queues ("streams")
// runs calls of different queues as it likes, unless one is told to wait for another:
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
  double seconds = 0;  // about how long it takes
};

// Whether one writes what the other reads or writes.
bool conflict(const CallUse& a, const CallUse& b);
// Both as one call.
void join(CallUse& call, const CallUse& other);

struct StreamCall {
  int stream = 0;
  std::vector<int> waits_for;  // calls of other streams, before which it may not begin
};

// In the order of the calls; what a stream has waited for once, directly or through another's wait,
// it does not wait for again.
std::vector<StreamCall> spread_over_streams(const std::vector<CallUse>& calls, int streams);

}  // namespace thimble
