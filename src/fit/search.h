// The choice between steps. A plan is set aside when another of a more faithful tier takes no more memory
// and at most kNearTie times as long; of the rest, the one that fits and counts as the fastest is taken:
// within a tier, harm counts as time (Candidate). What is set aside and what counts do not depend on the
// budget: so a smaller budget never gives a plan that counts as faster, or a larger arena, and no plan
// that fits is faster by more than kNearTie. Steps that cannot win, by what their plans cannot be below,
// are not planned.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fit/step.h"

namespace thimble {

inline constexpr double kNearTie = 1 + kMostHarm;

class FitSearch {
 public:
  // REQUIRES: there are some; the first is as typed.
  explicit FitSearch(std::vector<std::unique_ptr<FitStep>> steps);

  struct Pick : FitStep::Pick {
    FitStep* step = nullptr;
    double counted() const { return step->counted(seconds); }
  };
  // The choice within the budget; none: nothing fits.
  std::optional<Pick> within(Bytes budget);
  bool has_room(Bytes budget);
  Pick smallest();
  // Chooses without it from now on. REQUIRES: there are others.
  void leave_out(const FitStep& step);

  const std::vector<std::unique_ptr<FitStep>>& steps() const { return steps_; }

 private:
  struct Known {
    double below = 0;  // nothing else is, of those that count as less time
    std::optional<Pick> pick = {};
  };

  // The steps that are chosen from, of that tier.
  std::vector<FitStep*> of(Tier tier) const;
  // What the fastest of all that fit counts as, set aside or not; infinite: nothing does.
  double fastest_within(Bytes budget);
  // Of tiers up to that one, what is left when some plans are set aside; nothing that counts as
  // `limit`.
  std::optional<Pick> best_up_to(Tier tier, Bytes budget, double limit);
  std::optional<Pick> not_set_aside(FitStep& step, Bytes budget, double limit);

  std::vector<std::unique_ptr<FitStep>> steps_;
  std::vector<FitStep*> chosen_from_;
  std::map<std::pair<Tier, int64_t>, Known> known_;
};

}  // namespace thimble
