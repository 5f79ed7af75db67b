// A step that could be chosen, as a selector sees it: a family of plans, each with its time and its arena,
// of which a budget takes the fastest.
#pragma once

#include <optional>

#include "base/number/bytes.h"
#include "transform/numerics_tier.h"

namespace thimble {

struct PlanPoint {
  double seconds = 0;
  Bytes arena;
};

class Option {
 public:
  virtual ~Option() = default;

  virtual NumericsTier tier() const = 0;
  virtual double risk() const = 0;  // of its numbers; more is worse
  // Bounds: no plan is smaller, and none within the budget is faster.
  virtual Bytes least_arena() const = 0;
  virtual double least_seconds(Bytes budget) const = 0;
  // The plan that computes everything once, where the budget has room for it.
  virtual std::optional<PlanPoint> without_recompute(Bytes budget) = 0;
  // None: nothing is within it.
  virtual std::optional<PlanPoint> fastest_within(Bytes budget) = 0;
  virtual PlanPoint smallest() = 0;
  // From here on it has no plan in less.
  virtual void raise_floor(Bytes least) = 0;
};

}  // namespace thimble
