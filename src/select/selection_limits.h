// Every threshold of the techniques that a budget chooses from, each with its reason. How many of
// their combinations are built is in plan/search/search_limits.h; the near tie, a promise to users,
// is in select/pareto_selector.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thimble {

struct SelectionLimits {
  // ---- Accuracy risk (2026-11-16) ----------------------------------------------------------------
  // Only their order has a meaning: sums of risks keep the order that select/candidates.h states.
  double sixteen_bits = 0.001, state = 0.002, frozen = 0.002, codec = 0.003, statistics = 0.004;
  double sparsity = 0.014;   // more than all others together
  double worse = 0.001;      // from one choice of a technique to the next
  double sparser = 0.009;    // likewise, of densities
  double immovable = 0.005;  // nonzeros that stay where they are

  // ---- Rows of a micro-batch ---------------------------------------------------------------------
  // Batch statistics of fewer rows are hardly those of a batch. (2026-11-16)
  int64_t least_statistics = 4;
  // With fewer than one row in so many of the batch, the risk is a step higher. (2026-11-16)
  int64_t few_statistics = 8;
  // Ratios of neighbours: a divisor nearer than the first changes little, and a gap wider than the
  // second gets a row in its middle, divisor or not. (2026-11-16)
  double near_rows = 1.25, far_rows = 2.5;
  // The same between two rows of which the fewer cost time. (2026-11-17)
  double near_rows_between = 1.1;

  // ---- Logits beside adapters (2026-11-19) -------------------------------------------------------
  // Tokens with logits at a time. A frozen head is only read once more for every group of them.
  int64_t few_logits = 64;

  // ---- Refusals that a bound proves (2026-11-19) -------------------------------------------------
  // They come within a second. The floor of a step of more nodes takes longer to find, and so do the
  // floors of other tiers of a smaller one.
  size_t refused_nodes = 2'000, refused_tiers_nodes = 120;

  // ---- The largest batch, length, depth or width (2026-11-16) ------------------------------------
  int64_t largest = 1 << 24;  // a larger value is never tried
  // A model that has no such value (a width that its heads do not divide) has one among so many
  // below.
  int64_t near_values = 64;
};
inline constexpr SelectionLimits kSelectionLimits;

}  // namespace thimble
