// The choice between options. A plan is dominated if one of lower risk, not dominated itself, needs
// no more memory and at most kNearTie times its time. Of the others, the selector picks the fastest
// that fits, and of equally fast ones the smallest. Domination does not depend on the budget, so a
// smaller budget never gives a faster plan or a larger arena. No plan that fits is faster than the
// pick by more than kNearTie. Options that cannot win by their bounds are never planned.
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
  every_plan,  // any plan of an option of lower risk
  without_recompute,  // any plan of a lower tier, and within a tier only lower-risk plans without recomputation
};

class ParetoSelector {
 public:
  // REQUIRES: there are options, and they outlive it.
  ParetoSelector(std::vector<Option*> options, Dominators dominators);

  struct Pick : PlanPoint {
    size_t option = 0;  // its index
  };
  // None: nothing fits.
  std::optional<Pick> within(Bytes budget);
  bool has_room(Bytes budget);
  Pick smallest();
  // Removes the option. REQUIRES: others are left.
  void drop(size_t option);
  // From now on the option counts only for budgets of at least that much.
  void raise_floor(size_t option, Bytes least);
  size_t left() const { return left_.size(); }

 private:
  struct Known {
    double below = 0;  // seconds; of all faster plans, only `pick` is not dominated
    std::optional<Pick> pick = {};
  };

  void forget();
  std::vector<size_t> with_level(int level) const;
  // Options with a lower bound on their time within the budget, least first.
  std::vector<std::pair<double, size_t>> promising(std::span<const size_t> options, Bytes budget);
  // The time of the fastest plan that fits, dominated or not. Infinite: none does.
  double fastest_within(Bytes budget);
  // Of options up to that level, the fastest plan below `limit` seconds that is not dominated.
  std::optional<Pick> best_up_to(int level, Bytes budget, double limit);
  std::optional<Pick> not_dominated(size_t option, Bytes budget, double limit);
  // A plan that dominates the option's; it is not dominated itself.
  std::optional<Pick> dominator(size_t option, const PlanPoint& plan);

  const std::vector<Option*> options_;
  std::vector<int> level_;    // by option: plans of lower levels may dominate its plans
  std::vector<size_t> left_;  // options not dropped
  std::map<std::pair<int, int64_t>, Known> known_;
  std::map<size_t, bool> stands_;  // by option: its plan without recomputation is not dominated
};

}  // namespace thimble
