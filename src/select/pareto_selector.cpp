#include "select/pareto_selector.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"

namespace thimble {
namespace {

// Limits are exclusive.
double just_above(double seconds) { return seconds * (1 + 1e-12); }

// Sums of the same risks in another order are the same.
bool less_risk(const Option& a, const Option& b) { return a.risk() < b.risk() * (1 - 1e-9); }

}  // namespace

ParetoSelector::ParetoSelector(std::vector<Option*> options, Dominators dominators)
    : options_(std::move(options)) {
  internal_check(!options_.empty(), "there is nothing to choose from");
  std::set<double> risks;
  for (const Option* option : options_) risks.insert(option->risk());
  for (size_t i = 0; i < options_.size(); ++i) {
    const auto rank = std::distance(risks.begin(), risks.find(options_[i]->risk()));
    const bool by_risk = dominators == Dominators::every_plan;
    level_.push_back(by_risk ? static_cast<int>(rank) : static_cast<int>(options_[i]->tier()));
    left_.push_back(i);
  }
}

void ParetoSelector::forget() {
  known_.clear();
  stands_.clear();
}

void ParetoSelector::drop(size_t option) {
  std::erase(left_, option);
  forget();
}

void ParetoSelector::raise_floor(size_t option, Bytes least) {
  options_[option]->raise_floor(least);
  forget();
}

std::vector<size_t> ParetoSelector::with_level(int level) const {
  std::vector<size_t> options;
  std::ranges::copy_if(left_, std::back_inserter(options),
                       [&](size_t option) { return level_[option] == level; });
  return options;
}

std::vector<std::pair<double, size_t>> ParetoSelector::promising(std::span<const size_t> options,
                                                                 Bytes budget) {
  std::vector<std::pair<double, size_t>> sorted;
  for (const size_t option : options) {
    sorted.emplace_back(options_[option]->least_seconds(budget), option);
  }
  std::ranges::stable_sort(sorted, {}, [](const auto& entry) { return entry.first; });
  return sorted;
}

std::optional<ParetoSelector::Pick> ParetoSelector::within(Bytes budget) {
  // The fastest of all that fit is dominated at most by one that is not much slower.
  const double fastest = fastest_within(budget);
  return best_up_to(std::ranges::max(level_), budget, just_above(kNearTie * fastest));
}

double ParetoSelector::fastest_within(Bytes budget) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const size_t i : left_) {  // what is known without a planner
    if (options_[i]->least_seconds(Bytes(INT64_MAX)) >= fastest) continue;
    if (const auto without_recompute = options_[i]->without_recompute(budget)) {
      fastest = std::min(fastest, without_recompute->seconds);
    }
  }
  for (const auto& [bound, i] : promising(left_, budget)) {
    if (bound >= fastest) break;
    if (const auto plan = options_[i]->fastest_within(budget)) {
      fastest = std::min(fastest, plan->seconds);
    }
  }
  return fastest;
}

std::optional<ParetoSelector::Pick> ParetoSelector::dominator(size_t option,
                                                              const PlanPoint& plan) {
  const double limit = just_above(kNearTie * plan.seconds);
  const int level = level_[option];
  if (level == 0) return std::nullopt;
  if (const auto milder = best_up_to(level - 1, plan.arena, limit)) return milder;
  for (const size_t i : with_level(level)) {
    Option& other = *options_[i];
    if (!less_risk(other, *options_[option]) || other.least_seconds(Bytes(INT64_MAX)) >= limit) {
      continue;
    }
    const auto without_recompute = other.without_recompute(plan.arena);
    if (!without_recompute) continue;
    const auto [known, fresh] = stands_.try_emplace(i, false);
    if (fresh) known->second = !dominator(i, *without_recompute);
    if (known->second) return Pick{*without_recompute, i};
  }
  return std::nullopt;
}

std::optional<ParetoSelector::Pick> ParetoSelector::not_dominated(size_t option, Bytes budget,
                                                                  double limit) {
  auto plan = options_[option]->fastest_within(budget);
  while (plan && plan->seconds <= limit) {
    const auto other = dominator(option, *plan);
    if (!other) return Pick{*plan, option};
    // It dominates all plans between, which are no faster.
    plan = options_[option]->fastest_within(other->arena - Bytes(1));
  }
  return std::nullopt;
}

std::optional<ParetoSelector::Pick> ParetoSelector::best_up_to(int level, Bytes budget,
                                                               double limit) {
  if (level < 0) return std::nullopt;
  const auto key = std::pair(level, budget.count);
  const auto known = known_.find(key);
  if (known != known_.end() && (known->second.pick || known->second.below >= limit)) {
    const std::optional<Pick>& pick = known->second.pick;
    return pick && pick->seconds < limit ? pick : std::nullopt;
  }
  std::optional<Pick> best = best_up_to(level - 1, budget, limit);
  for (const auto& [bound, i] : promising(with_level(level), budget)) {
    if (bound >= limit || (best && bound > best->seconds)) break;
    const auto pick = not_dominated(i, budget, best ? best->seconds : limit);
    const auto order = [](const Pick& p) { return std::pair(p.seconds, p.arena); };
    if (pick && pick->seconds < limit && (!best || order(*pick) < order(*best))) best = pick;
  }
  known_[key] = {limit, best};
  return best;
}

bool ParetoSelector::has_room(Bytes budget) {
  const auto kept = [&](size_t i) { return options_[i]->without_recompute(budget).has_value(); };
  if (std::ranges::any_of(left_, kept)) return true;
  std::vector<size_t> leanest_first = left_;
  std::ranges::stable_sort(leanest_first, {}, [&](size_t i) { return options_[i]->least_arena(); });
  return std::ranges::any_of(
      leanest_first, [&](size_t i) { return options_[i]->fastest_within(budget).has_value(); });
}

ParetoSelector::Pick ParetoSelector::smallest() {
  std::vector<size_t> leanest_first = left_;
  std::ranges::stable_sort(leanest_first, {}, [&](size_t i) { return options_[i]->least_arena(); });
  std::optional<Pick> best;
  for (const size_t i : leanest_first) {
    if (best && options_[i]->least_arena() >= best->arena) break;
    const PlanPoint plan = options_[i]->smallest();
    if (!best || plan.arena < best->arena) best = Pick{plan, i};
  }
  return *best;
}

}  // namespace thimble
