// First fit in a given order, and the orders that packers try.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/layout/independent_parts.h"
#include "plan/layout/occupied_space.h"

namespace thimble {

struct Placement {
  std::vector<int64_t> offsets;  // one per item
  int64_t end = 0;               // the highest
  int64_t probes = 0;            // its effort: ranges visited (OccupiedSpace::probes)
};

// Places the items of `part` in `order` (each item once), each at the lowest offset that is free
// throughout its life (or a low one, where space is very fragmented).
Placement place_in_order(const Part& part, std::span<const int> order);
// The same, reusing `space`. REQUIRES: `space` has the part's slots.
Placement place_in_order(const Part& part, std::span<const int> order, OccupiedSpace& space);

// Large first: small buffers fill the gaps that large ones leave.
std::vector<int> order_by_size(const Part& part);

// Long-lived first: the kept activations of a chain stack up in the order in which backward frees
// them, and short-lived values lie on top.
std::vector<int> order_by_lifetime(const Part& part);

// Size times lifetime: between the two.
std::vector<int> order_by_area(const Part& part);

// Packer::pack that tries kOrder alone.
template <std::vector<int> (*kOrder)(const Part& part)>
Layout pack_in_order(std::span<const BufferUse> buffers, Bytes good_enough) {
  return pack_by_parts(buffers, good_enough, [](const Part& part, int64_t) {
    return place_in_order(part, kOrder(part)).offsets;
  });
}

}  // namespace thimble
