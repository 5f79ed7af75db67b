// Which bytes are taken at which times, for packers that place buffers in an order of their own.
//
// A segment tree over slots. A node keeps two sets of byte ranges: those taken throughout the
// node's slots (`throughout`), and those taken in any of them (`anywhere`). A stretch of time sees
// the `throughout` of the nodes above it and the `anywhere` of the nodes it consists of. Ranges
// that touch are merged, so that a well-packed past is a handful of ranges however many buffers
// made it.
#pragma once

#include <cstdint>
#include <vector>

namespace thimble {

class OccupiedSpace {
 public:
  explicit OccupiedSpace(int slots);
  // All free again; what its sets had room for stays with them.
  void clear();

  // The lowest offset at which `size` bytes are free during all of [first, last]. Where `probes` looks
  // have not found it, the search skips half of the space below the highest byte taken, so that a query
  // stays affordable. The offset is then free, but perhaps not the lowest.
  int64_t low_fit(int first, int last, int64_t size, int64_t probes);

  // REQUIRES: offset and size are multiples of kArenaAlignment.
  void occupy(int first, int last, int64_t offset, int64_t size);

  // Looks taken so far, over all queries and placements.
  int64_t probes() const { return probes_; }

 private:
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };
  using Ranges = std::vector<Range>;  // ascending, never touching
  struct Node {
    Ranges throughout;
    Ranges anywhere;
  };
  // A set that a query has to do with: its ranges from the first on that are not passed by yet.
  struct Seen {
    explicit Seen(const Ranges& ranges) : next(ranges.data()), end(ranges.data() + ranges.size()) {}
    void skip_below(int64_t offset);

    const Range* next;
    const Range* end;
  };

  static void add(Ranges& ranges, Range range);
  void collect(int node, int begin, int end, int first, int last);
  void occupy(int node, int begin, int end, int first, int last, Range range);

  int slots_;
  std::vector<Node> nodes_;
  int64_t probes_ = 0;
  std::vector<Seen> seen_;  // scratch of one query
};

}  // namespace thimble
