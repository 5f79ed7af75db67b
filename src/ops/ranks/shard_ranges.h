// Parts of tensors among ranks, and what a collective does with them, on whatever device: who sends
// which bytes to whom, and what is then summed. A tensor of n elements is cut into parts of `part`
// elements, one for every rank in order, the last ones cut off where the tensor ends.
//
// Sums begin at what they are added into (or zero) and take the ranks' numbers in the order of the
// ranks: ((y + x0) + x1) + ... That is the order of microbatches on a single rank, whichever rank
// forms the sum, so that bits depend neither on timing nor on how ranks are joined. Every part is
// summed by the rank it belongs to (pieces from all, then parts to all): as few bytes as any way of
// doing it.
#pragma once

#include "comm/communicator.h"
#include "graph/op.h"

namespace thimble {

struct ShardRanges {
  int ranks = 1;
  int64_t elements = 0;  // of the whole
  int64_t part = 0;
  int64_t chunk = 0;  // elements of a part that are summed at a time

  int64_t begin(int rank) const { return rank * part; }
  // Elements of the rank's part from its element `at` on, `most` at most.
  int64_t held(int rank, int64_t at, int64_t most) const {
    return std::clamp<int64_t>(elements - begin(rank) - at, 0, most);
  }
};

inline ShardRanges shard_ranges(int64_t elements, const Attrs& attrs) {
  constexpr int64_t kStaged = 1 << 18, kLeast = 1 << 12;  // elements
  ShardRanges g = {.ranks = static_cast<int>(attrs.integer("ranks")), .elements = elements};
  g.part = attrs.integer("part", (elements + g.ranks - 1) / g.ranks);
  g.chunk = std::min(g.part, std::max(kLeast, kStaged / g.ranks));
  return g;
}

// Where the pieces of the others arrive.
inline Bytes staging_bytes(const ShardRanges& g, DType dtype) {
  return Bytes(g.ranks * g.chunk * size_of(dtype));
}

// sum[i] = [sum[i] +] x0[i] + x1[i] + ... for the elements that there are, where this rank's x is
// `own` and those of the others are staged; the rest of `count` becomes zero.
template <class T>
struct OrderedSum {
  T* sum;
  const T* own;
  const T* staged;
  int64_t stride;  // from rank to rank
  int64_t held, count;
  int rank, ranks;
  bool add;
};

// Whether what is behind the tensor's end, in the last parts, belongs to the result.
enum class PartPadding : uint8_t { none, zeros };

// The sum over the ranks of this rank's part of x, to `own`: `sum` runs an OrderedSum.
template <class T, class Sum>
void sum_own_part(Communicator& ranks, const ShardRanges& g, const T* x, T* own, bool add,
                  PartPadding padding, std::byte* workspace, const Sum& sum) {
  constexpr int64_t kSize = sizeof(T);
  const int rank = ranks.rank();
  for (int64_t at = 0; at < g.part; at += g.chunk) {
    const int64_t count = std::min(g.chunk, g.part - at);
    const int64_t held = g.held(rank, at, count);
    std::byte* const from = reinterpret_cast<std::byte*>(const_cast<T*>(x + at));
    ranks.exchange({from, g.part * kSize, count * kSize, (g.elements - at) * kSize},
                   {workspace, g.chunk * kSize, held * kSize});
    sum(OrderedSum<T>{own + at, x + g.begin(rank) + at, reinterpret_cast<const T*>(workspace),
                      g.chunk, held, padding == PartPadding::zeros ? count : held, rank, g.ranks,
                      add});
  }
}

// Parts in their places in `whole`, of which this rank has its own: all of them, afterwards.
template <class T>
void gather_shards(Communicator& ranks, const ShardRanges& g, T* whole) {
  constexpr int64_t kSize = sizeof(T);
  ranks.all_gather(
      {reinterpret_cast<std::byte*>(whole), g.part * kSize, g.part * kSize, g.elements * kSize});
}

// All of the sum, on every rank.
template <class T, class Sum>
void sum_all(Communicator& ranks, const ShardRanges& g, const T* x, T* y, bool add,
             std::byte* workspace, const Sum& sum) {
  // A part that is cut off to nothing lies nowhere.
  T* const own = g.held(ranks.rank(), 0, 1) > 0 ? y + g.begin(ranks.rank()) : y;
  sum_own_part(ranks, g, x, own, add, PartPadding::none, workspace, sum);
  gather_shards(ranks, g, y);
}

// Parts that lie elsewhere, gathered: `copy(from, to, bytes)` puts this rank's in its place.
template <class Copy>
void gather_from(Communicator& ranks, const ShardRanges& g, const TensorRef& part,
                 const TensorRef& whole, const Copy& copy) {
  const int64_t size = size_of(whole.type.dtype);
  const int64_t held = g.held(ranks.rank(), 0, g.part);
  if (held > 0) {
    copy(part.as<std::byte>(), whole.as<std::byte>() + g.begin(ranks.rank()) * size, held * size);
  }
  ranks.all_gather({whole.as<std::byte>(), g.part * size, g.part * size, g.elements * size});
}

}  // namespace thimble
