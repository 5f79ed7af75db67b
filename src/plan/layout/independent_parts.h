// Divides a packing problem (offset assignment) into parts that can be packed independently without
// loss.
//
// A buffer that lives as long as everything around it is a full-width slab: it can lie at the
// bottom of the arena and costs no other buffer space. Without slabs, stretches of time that share
// no buffer are independent. Both cuts repeat inside each stretch:
//
//   bytes |      +--+   +----+          |      +--+ | +----+
//         |  +---+--+   |    +--+       |  +---+--+ | |    +--+
//         |  +------+   +-------+   =>  |  +------+ | +-------+     weights: an offset, no search
//         | [====== weights ======]     |   part 0     part 1
//         +-------------------- time
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace thimble {

// A buffer inside a part. Time is counted in slots: the calls at which the set of live buffers is
// maximal. Two buffers overlap in time exactly if they share a slot.
struct PartItem {
  int64_t size = 0;  // aligned, positive
  int first = 0;     // slots, inclusive
  int last = 0;
  int buffer = 0;  // index in the packer's input

  int width() const { return last - first + 1; }
  bool overlaps(const PartItem& other) const { return first <= other.last && other.first <= last; }
};

struct Part {
  int64_t base = 0;  // bytes below this part's own address 0
  int slots = 0;
  std::vector<PartItem> items;  // in order of `first`
};

// The largest sum of sizes in one slot.
int64_t live_peak(const Part& part);

// The highest end of `items` at `offsets`.
int64_t highest_end(const Part& part, std::span<const int64_t> offsets);

// Packs each part with `pack_part` (offsets within the part, one per item) and assembles the
// layout. `target` is what remains of `good_enough` above the part's base, never below the part's
// own live peak: a part that ends there needs no further search.
using PackPart = std::function<std::vector<int64_t>(const Part& part, int64_t target)>;
Layout pack_by_parts(std::span<const BufferUse> buffers, Bytes good_enough,
                     const PackPart& pack_part);

// Packer::pack whose parts share one effort, kEffort: kPackPart(part, target, left) subtracts its
// own from `left`, the rest of it.
template <auto kPackPart, int64_t kEffort>
Layout pack_within(std::span<const BufferUse> buffers, Bytes good_enough) {
  int64_t left = kEffort;
  return pack_by_parts(buffers, good_enough, [&](const Part& part, int64_t target) {
    return kPackPart(part, target, left);
  });
}

}  // namespace thimble
