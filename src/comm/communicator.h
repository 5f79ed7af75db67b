// Processes that train together, and what they can do with each other's bytes. The seam to MPI is
// this small: bytes go from rank to rank; what is summed, and in which order, is decided above
// (ops/ranks/shard_ranges.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace thimble {

// A piece of bytes for every rank, at equal distances; the last ones may be cut off, or be empty.
//
//   first          + stride          + 2 stride                    + end
//   │ piece 0      │ piece 1         │ piece 2 ..............│ piece 3 (cut off)
struct Pieces {
  std::byte* first = nullptr;
  int64_t stride = 0;
  int64_t bytes = 0;  // of a piece that is not cut off
  int64_t end = std::numeric_limits<int64_t>::max();

  std::span<std::byte> of(int rank) const {
    const int64_t begin = rank * stride;
    const int64_t size = std::clamp<int64_t>(end - begin, 0, bytes);
    return {size > 0 ? first + begin : first, static_cast<size_t>(size)};
  }
};

// Every call is made by all ranks in the same order, with sizes that agree; it returns when this
// rank's bytes may be used again. Calls allocate nothing of ours; a library may.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // out.of(k) goes to rank k, and rank k's message for this rank comes to in.of(k). A rank's
  // message for itself stays where it is.
  virtual void exchange(const Pieces& out, const Pieces& in) = 0;
  // all.of(k) is what rank k has; in the end every rank has all of them.
  virtual void all_gather(const Pieces& all) = 0;
  // The bytes of `root` go to all.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  // Spent in calls so far, waiting for others included.
  virtual double seconds() const { return 0; }
};

}  // namespace thimble
