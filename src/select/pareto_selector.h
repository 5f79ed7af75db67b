// The choice between options. A plan is dominated when another of less risk takes no more memory and at
// most kNearTie times as long, and is not dominated itself. Of the rest, the fastest that fits is taken;
// of equally fast ones the smallest. Domination does not depend on the budget: so a smaller budget never
// gives a faster plan or a larger arena, and no plan that fits is faster by more than kNearTie.
// Options that cannot win, by their bounds, are not asked for plans.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "select/option.h"

namespace thimble {

inline constexpr double kNearTie = 1.05;

// Which plans dominate others.
enum class Dominators : uint8_t {
  every_plan,         // any of an option of less risk
  without_recompute,  // any of a milder tier; within a tier, of less risk, those that compute all once
};

class ParetoSelector {
 public:
  // REQUIRES: there are options, and they outlive it.
  ParetoSelector(std::vector<Option*> options, Dominators dominators);

  struct Pick : PlanPoint {
    size_t option = 0;  // its place
  };
  // None: nothing fits.
  std::optional<Pick> within(Bytes budget);
  bool has_room(Bytes budget);
  Pick smallest();
  // Chooses without it from now on. REQUIRES: others are left.
  void drop(size_t option);
  // Chooses it only within that much from now on.
  void raise_floor(size_t option, Bytes least);
  size_t left() const { return left_.size(); }

 private:
  struct Known {
    double below = 0;  // nothing else is, of those that take less time
    std::optional<Pick> pick = {};
  };

  void forget();
  std::vector<size_t> with_level(int level) const;
  // With their least time within the budget, the most promising first.
  std::vector<std::pair<double, size_t>> promising(std::span<const size_t> options, Bytes budget);
  // The time of the fastest that fits, dominated or not; infinite: nothing does.
  double fastest_within(Bytes budget);
  // Of levels up to that one, the fastest that nothing dominates; none that takes `limit`.
  std::optional<Pick> best_up_to(int level, Bytes budget, double limit);
  std::optional<Pick> not_dominated(size_t option, Bytes budget, double limit);
  // A plan that dominates the option's; it is not dominated itself.
  std::optional<Pick> dominator(size_t option, const PlanPoint& plan);

  const std::vector<Option*> options_;
  std::vector<int> level_;    // by option: every plan of a lower one dominates
  std::vector<size_t> left_;  // that are chosen from
  std::map<std::pair<int, int64_t>, Known> known_;
  std::map<size_t, bool> stands_;  // whether nothing dominates it, everything computed once
};

}  // namespace thimble
