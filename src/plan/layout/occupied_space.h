// Occupied bytes by time, for packers that place buffers in an order of their own.
//
// A segment tree over slots. A node keeps two sets of byte ranges: those occupied during all of the
// node's slots (`throughout`), and those occupied during any of them (`anywhere`). A query reads
// `throughout` of the nodes above its range and `anywhere` of the nodes that make up its range.
// Adjacent ranges are merged, so densely packed buffers become a few ranges, however many there
// are.
#pragma once

#include <cstdint>
#include <vector>

namespace thimble {

class OccupiedSpace {
 public:
  explicit OccupiedSpace(int slots);
  // Frees everything. The sets keep their capacity.
  void clear();

  // The lowest offset at which `size` bytes are free during all of [first, last]. After `probes`
  // ranges without success, the search skips half of the space below the highest occupied byte,
  // which bounds its time. The offset is then free, but perhaps not the lowest.
  int64_t low_fit(int first, int last, int64_t size, int64_t probes);

  // REQUIRES: offset and size are multiples of kArenaAlignment.
  void occupy(int first, int last, int64_t offset, int64_t size);

  // Ranges visited so far, over all queries and placements.
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
  // A set in a query: its ranges that the query has not passed yet.
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
