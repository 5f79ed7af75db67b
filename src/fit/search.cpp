#include "fit/search.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace thimble {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// What is a little beyond: limits are exclusive.
double just_above(double seconds) { return seconds * (1 + 1e-12); }

// REQUIRES: it is not exact.
Tier milder_than(Tier tier) { return tier == Tier::approximate ? Tier::equivalent : Tier::exact; }

// Sums of the same harms in another order are the same.
bool harms_less(const FitStep& a, const FitStep& b) {
  return a.candidate().harm < b.candidate().harm * (1 - 1e-9);
}

// With what they cannot take less than within the budget, the most promising first.
std::vector<std::pair<double, FitStep*>> promising(const std::vector<FitStep*>& steps,
                                                   Bytes budget) {
  std::vector<std::pair<double, FitStep*>> sorted;
  for (FitStep* step : steps) {
    sorted.emplace_back(step->least_seconds(budget), step);
  }
  std::ranges::stable_sort(sorted, {}, [](const auto& entry) { return entry.first; });
  return sorted;
}

}  // namespace

FitSearch::FitSearch(std::vector<std::unique_ptr<FitStep>> steps) : steps_(std::move(steps)) {
  internal_check(!steps_.empty(), "there is nothing to choose from");
  for (const auto& step : steps_) chosen_from_.push_back(step.get());
}

void FitSearch::leave_out(const FitStep& step) {
  std::erase(chosen_from_, &step);
  known_.clear();
  stands_.clear();
}

void FitSearch::raise_floor(FitStep& step, Bytes least) {
  step.raise_floor(least);
  known_.clear();
  stands_.clear();
}

std::vector<FitStep*> FitSearch::of(Tier tier) const {
  std::vector<FitStep*> steps;
  std::ranges::copy_if(chosen_from_, std::back_inserter(steps),
                       [&](const FitStep* step) { return step->tier() == tier; });
  return steps;
}

std::optional<FitSearch::Pick> FitSearch::within(Bytes budget) {
  // The fastest of all that fit is set aside at most for one that is not much slower.
  const double fastest = fastest_within(budget);
  return best_up_to(Tier::approximate, budget, just_above(kNearTie * fastest));
}

double FitSearch::fastest_within(Bytes budget) {
  double fastest = kAny;
  for (const FitStep* step : chosen_from_) {  // what is known without a planner
    const double once = step->once_seconds();
    if (once < fastest && step->is_optimal() && step->keeps_within(budget)) fastest = once;
  }
  for (const auto& [bound, step] : promising(chosen_from_, budget)) {
    if (bound >= fastest) break;
    if (const auto pick = step->within(budget)) fastest = std::min(fastest, pick->seconds);
  }
  return fastest;
}

std::optional<FitSearch::Pick> FitSearch::more_faithful(const FitStep& step,
                                                        const FitStep::Pick& plan) {
  if (step.tier() == Tier::exact) return std::nullopt;
  const double limit = just_above(kNearTie * plan.seconds);
  if (const auto milder = best_up_to(milder_than(step.tier()), plan.arena, limit)) return milder;
  for (FitStep* other : of(step.tier())) {
    if (!harms_less(*other, step) || other->once_seconds() >= limit || !other->is_optimal() ||
        !other->keeps_within(plan.arena)) {
      continue;
    }
    const auto [known, fresh] = stands_.try_emplace(other, false);
    if (fresh) known->second = !more_faithful(*other, other->once());
    if (known->second) return Pick{other->once(), other};
  }
  return std::nullopt;
}

std::optional<FitSearch::Pick> FitSearch::not_set_aside(FitStep& step, Bytes budget, double limit) {
  auto pick = step.within(budget);
  while (pick && pick->seconds <= limit) {
    const auto milder = more_faithful(step, *pick);
    if (!milder) return Pick{*pick, &step};
    // So are all plans between: they are no faster.
    pick = step.within(milder->arena - Bytes(1));
  }
  return std::nullopt;
}

std::optional<FitSearch::Pick> FitSearch::best_up_to(Tier tier, Bytes budget, double limit) {
  const auto key = std::pair(tier, budget.count);
  const auto known = known_.find(key);
  if (known != known_.end() && (known->second.pick || known->second.below >= limit)) {
    const std::optional<Pick>& pick = known->second.pick;
    return pick && pick->seconds < limit ? pick : std::nullopt;
  }
  std::optional<Pick> best;
  if (tier != Tier::exact) best = best_up_to(milder_than(tier), budget, limit);
  for (const auto& [bound, step] : promising(of(tier), budget)) {
    if (bound >= limit || (best && bound > best->seconds)) break;
    const auto pick = not_set_aside(*step, budget, best ? best->seconds : limit);
    const auto order = [](const Pick& p) { return std::pair(p.seconds, p.arena); };
    if (pick && pick->seconds < limit && (!best || order(*pick) < order(*best))) best = pick;
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
