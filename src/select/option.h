// An option of the selector: a step and its possible plans, each with a time and an arena. For a
// budget it offers the fastest that fits.
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
  virtual double risk() const = 0;  // accuracy risk; higher is worse
  // Bounds: no plan is smaller, and none within the budget is faster.
  virtual Bytes least_arena() const = 0;
  virtual double least_seconds(Bytes budget) const = 0;
  // The plan without recomputation. None: it does not fit the budget.
  virtual std::optional<PlanPoint> without_recompute(Bytes budget) = 0;
  // The fastest plan that fits. None: no plan does.
  virtual std::optional<PlanPoint> fastest_within(Bytes budget) = 0;
  virtual PlanPoint smallest() = 0;
  // From now on it offers no plan with a smaller arena.
  virtual void raise_floor(Bytes least) = 0;
};

}  // namespace thimble
