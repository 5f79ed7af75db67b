#include "execute/streams.h"

#include <algorithm>
#include <map>

namespace thimble {
namespace {

// By stream: the latest call of it. -1: none.
using Latest = std::vector<int>;

void raise(Latest& to, const Latest& other) {
  for (size_t s = 0; s < to.size(); ++s) to[s] = std::max(to[s], other[s]);
}

// Who wrote and who read each byte last.
class History {
 public:
  explicit History(size_t streams) : streams_(streams) {}

  // Raises `needs` to what must be over before the range is read, or written.
  void before_read(const ByteRange& range, Latest& needs) {
    for_each(range, [&](Use& use) { raise(needs, use.writer); });
  }
  void before_write(const ByteRange& range, Latest& needs) {
    for_each(range, [&](Use& use) {
      raise(needs, use.writer);
      raise(needs, use.readers);
    });
  }
  void read(const ByteRange& range, size_t stream, int call) {
    for_each(range, [&](Use& use) { use.readers[stream] = call; });
  }
  void write(const ByteRange& range, size_t stream, int call) {
    for_each(range, [&](Use& use) {
      use = fresh();
      use.writer[stream] = call;
    });
    join(range);
  }

 private:
  struct Use {
    Latest writer, readers;  // readers since then
  };

  Use fresh() const { return {Latest(streams_, -1), Latest(streams_, -1)}; }

  // Makes a piece begin at `at`.
  void split(int64_t at) {
    auto next = pieces_.lower_bound(at);
    if (next != pieces_.end() && next->first == at) return;
    pieces_.emplace_hint(next, at, next == pieces_.begin() ? fresh() : std::prev(next)->second);
  }

  template <class Body>
  void for_each(const ByteRange& range, const Body& body) {
    if (range.begin >= range.end) return;
    split(range.begin);
    split(range.end);
    const auto end = pieces_.find(range.end);
    for (auto piece = pieces_.find(range.begin); piece != end; ++piece) body(piece->second);
  }

  // One piece for the whole range, which has one writer now.
  void join(const ByteRange& range) {
    if (range.begin >= range.end) return;
    pieces_.erase(std::next(pieces_.find(range.begin)), pieces_.find(range.end));
  }

  const size_t streams_;
  std::map<int64_t, Use> pieces_;  // by first byte; each ends where the next begins
};

bool overlap(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
  for (const ByteRange& x : a) {
    for (const ByteRange& y : b) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

}  // namespace

bool conflict(const CallUse& a, const CallUse& b) {
  return overlap(a.writes, b.writes) || overlap(a.writes, b.reads) || overlap(a.reads, b.writes);
}

void join(CallUse& call, const CallUse& other) {
  call.reads.insert(call.reads.end(), other.reads.begin(), other.reads.end());
  call.writes.insert(call.writes.end(), other.writes.begin(), other.writes.end());
  call.seconds += other.seconds;
}

std::vector<StreamCall> spread_over_streams(const std::vector<CallUse>& calls, int streams) {
  const auto count = static_cast<size_t>(streams);
  History history(count);
  std::vector<StreamCall> result(calls.size());
  std::vector<double> finish(calls.size(), 0);
  std::vector<double> free_at(count, 0);  // by stream, in a run as the estimates have it
  std::vector<Latest> known(count, Latest(count, -1));  // what each stream has waited for so far
  std::vector<Latest> known_at(calls.size());           // likewise, by call: with itself

  for (size_t i = 0; i < calls.size(); ++i) {
    const CallUse& call = calls[i];
    Latest needs(count, -1);
    for (const ByteRange& range : call.reads) history.before_read(range, needs);
    for (const ByteRange& range : call.writes) history.before_write(range, needs);

    double ready = 0;
    for (const int need : needs) {
      if (need >= 0) ready = std::max(ready, finish[static_cast<size_t>(need)]);
    }
    // A stream that is free in time, the latest of them, so that the others stay free; preferably
    // one that it needs a call of, which spares a wait. Else the one that is free first.
    size_t chosen = 0;
    const auto rank = [&](size_t s) {
      const bool in_time = free_at[s] <= ready;
      return std::tuple(in_time, in_time && needs[s] >= 0, in_time ? free_at[s] : -free_at[s]);
    };
    for (size_t s = 1; s < count; ++s) {
      if (rank(s) > rank(chosen)) chosen = s;
    }
    StreamCall& placed = result[i];
    placed.stream = static_cast<int>(chosen);
    for (size_t s = 0; s < count; ++s) {
      if (s == chosen || needs[s] <= known[chosen][s]) continue;
      placed.waits_for.push_back(needs[s]);
      raise(known[chosen], known_at[static_cast<size_t>(needs[s])]);
    }
    known[chosen][chosen] = static_cast<int>(i);
    known_at[i] = known[chosen];
    finish[i] = std::max(ready, free_at[chosen]) + call.seconds;
    free_at[chosen] = finish[i];
    for (const ByteRange& range : call.reads) history.read(range, chosen, static_cast<int>(i));
    for (const ByteRange& range : call.writes) history.write(range, chosen, static_cast<int>(i));
  }
  return result;
}

}  // namespace thimble
