// The choice between steps. A plan is set aside when another takes no more memory and at most kNearTie
// times as long, and is more faithful: of another tier, or, approximate too, of less harm and computing
// everything once. Of the rest, the fastest that fits is taken. What is set aside does not depend on the
// budget: so a smaller budget never gives a faster plan or a larger arena, and no plan that fits is faster
// by more than kNearTie. Steps that cannot win, by what their plans cannot be below, are not planned.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fit/step.h"

namespace thimble {

inline constexpr double kNearTie = 1.05;

class FitSearch {
 public:
  // REQUIRES: there are some; the first is as typed.
  explicit FitSearch(std::vector<std::unique_ptr<FitStep>> steps);

  struct Pick : FitStep::Pick {
    FitStep* step = nullptr;
  };
  // The choice within the budget; none: nothing fits.
  std::optional<Pick> within(Bytes budget);
  bool has_room(Bytes budget);
  Pick smallest();
  // Chooses without it from now on. REQUIRES: there are others.
  void leave_out(const FitStep& step);
  // Chooses it only within that much, from now on: FitStep::raise_floor().
  void raise_floor(FitStep& step, Bytes least);
  // That are chosen from.
  size_t left() const { return chosen_from_.size(); }

  const std::vector<std::unique_ptr<FitStep>>& steps() const { return steps_; }

 private:
  struct Known {
    double below = 0;  // nothing else is, of those that take less time
    std::optional<Pick> pick = {};
  };

  // The steps that are chosen from, of that tier.
  std::vector<FitStep*> of(Tier tier) const;
  // What the fastest of all that fit takes, set aside or not; infinite: nothing does.
  double fastest_within(Bytes budget);
  // Of tiers up to that one, what is left when some plans are set aside; nothing that takes `limit`.
  std::optional<Pick> best_up_to(Tier tier, Bytes budget, double limit);
  std::optional<Pick> not_set_aside(FitStep& step, Bytes budget, double limit);
  // Who sets the step's plan aside; it is not set aside itself.
  std::optional<Pick> more_faithful(const FitStep& step, const FitStep::Pick& plan);

  std::vector<std::unique_ptr<FitStep>> steps_;
  std::vector<FitStep*> chosen_from_;
  std::map<std::pair<Tier, int64_t>, Known> known_;
  std::map<const FitStep*, bool> stands_;  // whether nobody sets it aside, everything computed once
};

}  // namespace thimble
