#include "fit/search.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace thimble {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// What is a little beyond: limits are exclusive.
double just_above(double seconds) { return seconds * (1 + 1e-12); }

}  // namespace

FitSearch::FitSearch(std::vector<std::unique_ptr<FitStep>> steps) : steps_(std::move(steps)) {
  internal_check(!steps_.empty(), "there is nothing to choose from");
  for (const auto& step : steps_) chosen_from_.push_back(step.get());
  sort_by_harm();
}

void FitSearch::sort_by_harm() {
  std::ranges::stable_sort(chosen_from_, {}, &FitStep::harm);
  classes_.clear();
  known_.clear();
  for (size_t i = 0; i < chosen_from_.size(); ++i) {
    const bool same = i > 0 && chosen_from_[i]->harm() == chosen_from_[i - 1]->harm();
    if (!same) classes_.push_back({i, i});
    classes_.back().end = i + 1;
  }
}

void FitSearch::leave_out(const FitStep& step) {
  std::erase(chosen_from_, &step);
  sort_by_harm();
}

std::optional<FitSearch::Pick> FitSearch::within(Bytes budget) {
  // The fastest of all that fit is set aside at most for one that is not much slower.
  const double fastest = fastest_within(budget);
  return best_of_first(classes_.size(), budget, just_above(kNearTie * fastest));
}

double FitSearch::fastest_within(Bytes budget) {
  std::vector<std::pair<double, FitStep*>> promising;
  for (FitStep* step : chosen_from_) {
    promising.emplace_back(step->least_seconds(budget), step);
  }
  std::ranges::stable_sort(promising, {}, [](const auto& entry) { return entry.first; });
  double fastest = kAny;
  for (const FitStep* step : chosen_from_) {  // what is known without a planner
    if (step->once_seconds() < fastest && step->keeps_within(budget))
      fastest = step->once_seconds();
  }
  for (const auto& [bound, step] : promising) {
    if (bound >= fastest) break;
    if (const auto pick = step->within(budget)) fastest = std::min(fastest, pick->seconds);
  }
  return fastest;
}

std::optional<FitSearch::Pick> FitSearch::not_set_aside(FitStep& step, size_t classes, Bytes budget,
                                                        double limit) {
  for (auto pick = step.within(budget); pick && pick->seconds <= limit;
       pick = step.within(pick->arena - Bytes(1))) {
    if (!best_of_first(classes, pick->arena, just_above(kNearTie * pick->seconds))) {
      return Pick{*pick, &step};
    }
  }
  return std::nullopt;
}

std::optional<FitSearch::Pick> FitSearch::best_of_first(size_t classes, Bytes budget,
                                                        double limit) {
  if (classes == 0) return std::nullopt;
  const auto key = std::pair(classes, budget.count);
  const auto known = known_.find(key);
  if (known != known_.end() && (known->second.pick || known->second.below >= limit)) {
    const std::optional<Pick>& pick = known->second.pick;
    return pick && pick->seconds < limit ? pick : std::nullopt;
  }
  std::optional<Pick> best = best_of_first(classes - 1, budget, limit);
  const Class& last = classes_[classes - 1];
  std::vector<std::pair<double, FitStep*>> promising;
  for (size_t i = last.begin; i < last.end; ++i) {
    promising.emplace_back(chosen_from_[i]->least_seconds(budget), chosen_from_[i]);
  }
  std::ranges::stable_sort(promising, {}, [](const auto& entry) { return entry.first; });
  for (const auto& [bound, step] : promising) {
    if (bound >= limit || (best && bound > best->seconds)) break;
    const auto pick = not_set_aside(*step, classes - 1, budget, best ? best->seconds : limit);
    const auto rank = [](const Pick& p) { return std::pair(p.seconds, p.arena); };
    if (pick && pick->seconds < limit && (!best || rank(*pick) < rank(*best))) best = pick;
  }
  known_[key] = {limit, best};
  return best;
}

bool FitSearch::has_room(Bytes budget) {
  const auto kept = [&](const FitStep* step) { return step->keeps_within(budget); };
  if (std::ranges::any_of(chosen_from_, kept)) return true;
  std::vector<FitStep*> leanest_first = chosen_from_;
  std::ranges::stable_sort(leanest_first, {}, &FitStep::least_arena);
  return std::ranges::any_of(leanest_first,
                             [&](FitStep* step) { return step->within(budget).has_value(); });
}

FitSearch::Pick FitSearch::smallest() {
  std::vector<FitStep*> leanest_first = chosen_from_;
  std::ranges::stable_sort(leanest_first, {}, &FitStep::least_arena);
  std::optional<Pick> best;
  for (FitStep* step : leanest_first) {
    if (best && step->least_arena() >= best->arena) break;
    const FitStep::Pick pick = step->smallest();
    if (!best || pick.arena < best->arena) best = Pick{pick, step};
  }
  return *best;
}

}  // namespace thimble
