#include "select/largest_that_fit.h"

#include <algorithm>
#include <utility>

#include "base/attempt.h"
#include "base/error.h"
#include "plan/make_plan.h"
#include "plan/policy.h"
#include "select/selection_limits.h"

namespace thimble {
namespace {

constexpr int64_t kPart = 128;  // of a value, to which it is found

double number(Bytes bytes) { return static_cast<double>(bytes.count); }

int64_t value_of(const Recipe& recipe, const std::string& field) {
  Recipe copy = recipe;
  complete_model(copy.model);
  const std::vector<Field> fields = fields_of(copy);
  const nlohmann::json value = find_field(fields, field)->get();
  return value.is_number_integer() ? std::max<int64_t>(1, value.get<int64_t>()) : 1;
}

}  // namespace

LargestThatFit::LargestThatFit(const Recipe& requested, const Settings& explicit_settings,
                               std::shared_ptr<Machine> machine, const SearchLimits& limits)
    : requested_(requested),
      budget_(*requested.memory),
      machine_(std::move(machine)),
      limits_(limits) {
  internal_check(budget_ > kLeastMemory, "the largest that fits no budget");
  requested_.fit = false;
  requested_.memory.reset();
  if (!selects_techniques(requested, explicit_settings)) {
    policy_ = requested.planner == budget_policy() ? "" : requested.planner;
    return;
  }
  TechniqueSelector selector(requested, explicit_settings, machine_, limits_);
  const auto& options = selector.options(selector.allow());
  const auto leanest = std::ranges::min_element(
      options, {}, [](const auto& option) { return option->bounds().least; });
  changes_ = all_changes((*leanest)->candidate());
  if (explicit_settings.contains("planner") && requested.planner != budget_policy()) {
    policy_ = requested.planner;
  }
}

Recipe LargestThatFit::recipe_with(const std::string& field, int64_t value) const {
  Recipe recipe = requested_;
  Settings settings = changes_;
  if (field == "batch") {
    settings.erase("microbatch");
    recipe.microbatch = 0;
  }
  settings[field] = value;
  configure(recipe, settings);
  recipe.planner = keep_all_policy();
  recipe.allow = NumericsTier::approximate;  // whose choice the changes are, was asked already
  check(recipe);
  return recipe;
}

std::string LargestThatFit::leanest_policy(const Step& step) const {
  PlanRequest request = step.request();
  std::string leanest(keep_all_policy());
  Bytes least(INT64_MAX);
  for (const Policy* policy : all_policies()) {
    if (policy->traits.by_budget) continue;
    request.policy = policy->name;
    request.number = policy->number.usual;
    const Bytes peak = cost_of(request, policy->schedule(request)).live_peak;
    if (peak < least) {
      least = peak;
      leanest = policy->name;
    }
  }
  return leanest;
}

std::optional<Bytes> LargestThatFit::peak(const std::string& field, int64_t value) {
  const auto [at, fresh] = known_.try_emplace({field, value});
  if (!fresh) return at->second;
  call_watch(limits_);
  at->second = if_allowed([&] {
    const Recipe recipe = recipe_with(field, value);
    const Step step = build_step(recipe, largest_shape(recipe), *machine_);
    if (policy_.empty()) policy_ = leanest_policy(step);
    PlanRequest request = step.request();
    const ChosenPolicy chosen = choose_policy(policy_);
    request.policy = policy_;
    request.number = chosen.number;
    return cost_of(request, chosen.policy->schedule(request)).live_peak;
  });
  return at->second;
}

bool LargestThatFit::is_laid_out(const std::string& field, int64_t value) {
  const Recipe recipe = recipe_with(field, value);
  const Step step = build_step(recipe, largest_shape(recipe), *machine_);
  PlanRequest request = step.request();
  request.policy = policy_;
  return std::get<Plan>(make_plan(request)).arena <= budget_;
}

std::optional<LargestThatFits> LargestThatFit::find(const std::string& field, int64_t fits) {
  Recipe copy = requested_;
  const bool there = find_field(fields_of(copy), field) != nullptr;
  if (!there || requested_.tokens > 0) return std::nullopt;
  // The largest value that fits, one below it that was tried, and the least that does not.
  LargestThatFits largest = {.value = fits};
  int64_t below = 0, high = 0;
  const auto try_one = [&](int64_t value) {
    const std::optional<Bytes> bytes = peak(field, value);
    if (bytes && *bytes <= budget_) {
      if (value > largest.value) below = std::exchange(largest.value, value);
      return true;
    }
    if (high == 0 || value < high) {
      high = value;
      largest.by_memory = bytes.has_value();
    }
    return false;
  };
  // Bytes grow about evenly between two values, and beyond them.
  const auto expected = [&](int64_t low, int64_t other) -> int64_t {
    if (low <= 0 || other <= low) return 0;
    const std::optional<Bytes> one = peak(field, low), two = peak(field, other);
    const double from = one ? number(*one) : 0, to = two ? number(*two) : 0;
    if (from <= 0 || to <= from) return 0;
    const double more = (number(budget_) - from) / (to - from) * static_cast<double>(other - low);
    return low +
           static_cast<int64_t>(std::min(more, static_cast<double>(kSelectionLimits.largest)));
  };
  int64_t value = std::max(fits, value_of(requested_, field));
  if (try_one(value)) {
    while (high == 0 && value < kSelectionLimits.largest) {
      const int64_t guess = expected(below, largest.value);
      value = std::max(value + 1, guess > value ? guess + guess / kPart : 2 * value);
      try_one(value);
    }
  } else {
    while (largest.value == 0 && value > 1) try_one(value = std::max<int64_t>(1, value / 2));
  }
  while (high > 0 && high - largest.value > std::max<int64_t>(1, largest.value / kPart)) {
    const int64_t low = largest.value, guess = expected(low, high);
    // From both sides, so that neither end stays where it is.
    const int64_t step = std::max<int64_t>(1, low / (2 * kPart));
    int64_t middle = guess > 0 ? guess : low + (high - low) / 2;
    middle = std::clamp(middle, std::min(low + step, high - 1), std::max(high - step, low + 1));
    if (middle <= low || middle >= high) break;
    try_one(middle);
  }
  // A layout may take a little more than what lives at once.
  while (largest.value > fits && !is_laid_out(field, largest.value)) {
    largest.value = std::max(fits, largest.value - std::max<int64_t>(1, largest.value / kPart));
  }
  return largest;
}

}  // namespace thimble
