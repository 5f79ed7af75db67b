#include "fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "fit/shortlist.h"
#include "plan/make_plan.h"

namespace thimble {
namespace {

Tier tier_of_search(const Recipe& typed, const Settings& said) {
  return said.contains("allow") ? typed.allow : Tier::equivalent;
}

// The recipe with its budget, as it would be typed: where nothing is computed again, it says so.
Recipe recipe_of(const FitSearch::Pick& pick, Bytes budget) {
  Recipe recipe = pick.step->candidate().recipe;
  recipe.memory = budget;
  const bool once = pick.arena == pick.step->once().arena;
  if (once && recipe.planner == "optimal") recipe.planner = "keep_all";
  recipe.fit = false;
  return recipe;
}

// With all variants of the step. Where the first keeps everything and others have no room for that, these
// compute things again.
std::variant<PlannedTraining, Infeasible> plan_variants(const FitSearch::Pick& pick,
                                                        Recipe& recipe) {
  const Schedule first = pick.step->schedule_of(pick);
  auto planned = plan_training(recipe, &first);
  const bool fits = std::holds_alternative<PlannedTraining>(planned);
  if (fits || !pick.step->is_optimal() || recipe.planner == "optimal") return planned;
  recipe.planner = "optimal";
  return plan_training(recipe, &first);
}

Settings all_changes(const Candidate& candidate) {
  Settings settings;
  for (const Change& change : candidate.changes) {
    settings.insert(change.settings.begin(), change.settings.end());
  }
  return settings;
}

// What was chosen, as it would be typed.
std::string typed_out(const Recipe& recipe, const Candidate& candidate) {
  Settings settings = all_changes(candidate);
  settings["memory"] = recipe.memory->count;
  settings["planner"] = recipe.planner;
  return flags_of(settings);
}

// The budget as it was typed.
std::string asked_text(const Settings& said, Bytes asked) {
  const auto typed = said.find("memory");
  if (typed != said.end() && typed->second.is_string()) return typed->second.get<std::string>();
  return asked == kLeastMemory ? "least" : fmt::format("{}", asked.count);
}

}  // namespace

Fit::Fit(const Recipe& typed, const Settings& said)
    : typed_(typed),
      said_(said),
      allow_(tier_of_search(typed, said)),
      backend_(make_backend(typed.device, typed.on)) {
  check(typed_);
  typed_.fit = false;
  typed_.memory.reset();
  if (!said_.contains("planner")) typed_.planner = "optimal";
  searches_.resize(3);
}

Fit::Fit(const Recipe& typed) : Fit(typed, settings_of(typed)) {}

FitSearch& Fit::search(Tier tier) {
  std::unique_ptr<FitSearch>& search = searches_[static_cast<size_t>(tier)];
  if (!search) {
    auto plain = std::make_unique<FitStep>(Candidate{.recipe = typed_}, *backend_, 1);
    allowed_tier(typed_, plain->graph(), typed_.codec);
    const Choices choices = choices_for(typed_, said_, tier, plain->graph());
    search = std::make_unique<FitSearch>(steps_worth_trying(std::move(plain), choices, *backend_));
  }
  return *search;
}

FitSearch::Pick Fit::smallest(Tier tier) {
  FitSearch& steps = search(tier);
  while (true) {
    const FitSearch::Pick pick = steps.smallest();
    Recipe recipe = recipe_of(pick, pick.arena);
    if (step_shapes(recipe).size() == 1) return pick;
    try {
      const auto planned = plan_variants(pick, recipe);
      const auto* const infeasible = std::get_if<Infeasible>(&planned);
      if (infeasible == nullptr || infeasible->min_bytes <= pick.arena) return pick;
      steps.raise_floor(*pick.step, infeasible->min_bytes);
    } catch (const UserError&) {  // a smaller last microbatch; who chooses finds another
      return pick;
    }
  }
}

std::variant<Fitted, DoesNotFit> Fit::within(Bytes budget) {
  const auto start = std::chrono::steady_clock::now();
  FitSearch& steps = search(allow_);
  const Bytes asked = budget;
  if (budget == kLeastMemory) budget = steps.smallest().arena;
  while (const auto pick = steps.within(budget)) {
    Recipe recipe = recipe_of(*pick, budget);
    std::optional<PlannedTraining> training;
    std::optional<Infeasible> infeasible;  // records of another length
    try {
      auto planned = plan_variants(*pick, recipe);
      if (auto* const ready = std::get_if<PlannedTraining>(&planned)) {
        training = std::move(*ready);
      } else {
        infeasible = std::get<Infeasible>(std::move(planned));
      }
    } catch (const UserError&) {  // a smaller last microbatch that does not fit
      if (steps.left() == 1) throw;
    }
    if (!training) {
      if (infeasible && infeasible->min_bytes > budget) {
        steps.raise_floor(*pick->step, infeasible->min_bytes);
      } else {
        internal_check(steps.left() > 1, "a plan that fits its budget does not");
        steps.leave_out(*pick->step);
      }
      if (asked == kLeastMemory) budget = steps.smallest().arena;
      continue;
    }
    FitReport report;
    report.allow = allow_;
    report.flags = typed_out(recipe, pick->step->candidate());
    report.harm = pick->step->candidate().harm;
    report.asked = asked_text(said_, asked);
    report.plain_arena = plain().once().arena;
    report.plain_ms = plain().once().seconds * 1e3;
    FitSearch::Pick taken = *pick;
    if (training->variants.size() > 1) taken.arena = training->plan().arena;  // by any of them
    report.shares = shares_of(typed_, taken, plain(), *backend_);
    for (const auto& step : steps.steps()) {
      ++report.tried;
      report.planned += step->was_planned() ? 1 : 0;
    }
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    training->plan_seconds = report.seconds;
    training->choices = static_cast<const BudgetChoices&>(report);
    return Fitted{std::move(*training), std::move(report)};
  }
  return does_not_fit(budget);
}

DoesNotFit Fit::does_not_fit(Bytes budget) {
  DoesNotFit fault = {.budget = budget, .allow = allow_};
  const FitSearch::Pick smallest = this->smallest(allow_);
  fault.min_bytes = smallest.arena;
  const PlanRequest& request = smallest.step->request();
  fault.why = infeasible(request, lay_out(request, smallest.step->schedule_of(smallest))).why;
  for (const Tier tier : {Tier::exact, Tier::equivalent, Tier::approximate}) {
    const FitSearch::Pick least = tier == allow_ ? smallest : this->smallest(tier);
    fault.floors.push_back({tier, least.arena, flags_of(all_changes(least.step->candidate()))});
    if (tier > allow_ && least.arena < fault.min_bytes) {
      fault.unlock.push_back(fmt::format("--allow {} goes down to {} ({} bytes)", name_of(tier),
                                         to_string(least.arena), least.arena.count));
    }
  }
  const OptimizerSpec& optimizer = typed_.optimizer;
  if (rule_of(optimizer).momentum && !rule_of(optimizer).folds && optimizer.momentum > 0) {
    fault.unlock.push_back("--optimizer sgd folds gradients into its momentum");
  }
  const Graph& graph = plain().graph();
  const bool mixes =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op->mixes_rows; });
  Recipe copy = typed_;
  if (mixes && allow_ != Tier::exact && find_field(fields_of(copy), "norm") != nullptr) {
    fault.unlock.push_back("--norm group makes microbatches equivalent");
  }
  return fault;
}

bool is_fitted(const Recipe& recipe, const Settings& said) {
  if (!recipe.fit || !recipe.memory) return false;
  user_check(!recipe.codec.automatic || !said.contains("fit"),
             "--fit chooses codecs itself; leave --codec auto out, or choose --fit off");
  return !recipe.codec.automatic;
}

}  // namespace thimble
