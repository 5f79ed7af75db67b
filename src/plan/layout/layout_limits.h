// Every threshold of the packers (offset assignment), each with its reason (2026-11-15). All are
// counts, never seconds: the same buffers have the same layout on a fast machine and on a busy one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thimble {

struct LayoutLimits {
  // A gap above the live peak of less than one part in so many is not worth a search.
  int64_t negligible_gap = 1000;

  // Deeply nested lifetimes (a plain chain) peel off one slab per round. Past this many visits per
  // buffer the remaining nest is left to the packers, which keeps the peeling linear.
  int64_t visits_per_buffer = 48;

  // Ranges of taken bytes that a placement in order looks at. Steps of real nets need some fifty
  // per buffer; only thousands of fragments live at once meet the limit.
  int64_t probes = 4'000'000, fewest_probes = 100;

  // The packer squeaky_wheel: ranges of taken bytes looked at, over all parts and rounds (some 0.2
  // s), and rounds without a better layout after which it returns to the best order so far.
  int64_t wheel_probes = 4'000'000;
  int wheel_rounds = 500, wheel_patience = 12;

  // Branch and bound: beyond so many items it would only repeat the greedy start. Visits to items
  // and slots: over all parts, capacities and rankings (some 0.1 s), and in one run.
  size_t most_items = 1500;
  int64_t visits = 6'000'000, visits_per_run = 1'500'000;
};
inline constexpr LayoutLimits kLayoutLimits;

}  // namespace thimble
