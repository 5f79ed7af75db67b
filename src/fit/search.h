// The choice between steps. A plan is set aside when another of less harm takes no more memory and at
// most kNearTie times as long; of the rest, the fastest that fits is taken. What is set aside does not
// depend on the budget: so a smaller budget never gives a faster plan or a larger arena, and no plan
// that fits is faster by more than that factor. Steps that cannot win, by what their plans cannot be
// below, are not planned.
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

  const std::vector<std::unique_ptr<FitStep>>& steps() const { return steps_; }

 private:
  // Steps of the same harm: [begin, end).
  struct Class {
    size_t begin = 0;
    size_t end = 0;
  };
  struct Known {
    double below = 0;  // nothing else is, of those that take less time
    std::optional<Pick> pick = {};
  };

  void sort_by_harm();
  // Of all that fit, set aside or not; infinite: nothing does.
  double fastest_within(Bytes budget);
  // Of the first so many classes, what is left when some plans are set aside; nothing that takes as
  // long as `limit`.
  std::optional<Pick> best_of_first(size_t classes, Bytes budget, double limit);
  std::optional<Pick> not_set_aside(FitStep& step, size_t classes, Bytes budget, double limit);

  std::vector<std::unique_ptr<FitStep>> steps_;
  std::vector<FitStep*> chosen_from_;  // less harm first
  std::vector<Class> classes_;
  std::map<std::pair<size_t, int64_t>, Known> known_;
};

}  // namespace thimble
