#include "select/technique_selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "select/selection_limits.h"
#include "select/shortlist.h"

namespace thimble {
namespace {

// The recipe with its budget, as it would be typed, and with keep_all where nothing is recomputed.
Recipe recipe_of(StepOption& option, const PlanPoint& plan, Bytes budget) {
  Recipe recipe = option.candidate().recipe;
  recipe.memory = budget;
  const bool without_recompute = plan.arena == option.without_recompute().arena;
  if (without_recompute && recipe.planner == budget_policy()) recipe.planner = keep_all_policy();
  recipe.fit = false;
  return recipe;
}

// The selected changes, as they would be typed.
std::string flags_of_choice(const Recipe& recipe, const Candidate& candidate) {
  Settings settings = all_changes(candidate);
  settings["memory"] = recipe.memory->count;
  settings["planner"] = recipe.planner;
  return flags_of(settings);
}

// The budget as it was typed.
std::string budget_text(const Settings& explicit_settings, Bytes asked) {
  const auto requested = explicit_settings.find("memory");
  if (requested != explicit_settings.end() && requested->second.is_string())
    return requested->second.get<std::string>();
  return asked == kLeastMemory ? "least" : fmt::format("{}", asked.count);
}

}  // namespace

TechniqueSelector::TechniqueSelector(const Recipe& requested, const Settings& explicit_settings,
                                     std::shared_ptr<Machine> machine, const SearchLimits& limits)
    : requested_(requested),
      explicit_settings_(explicit_settings),
      allow_(selected_tier(requested, explicit_settings)),
      machine_(std::move(machine)),
      limits_(limits) {
  requested_.fit = false;
  requested_.memory.reset();
  if (!explicit_settings_.contains("planner")) requested_.planner = budget_policy();
}

TechniqueSelector::Choice& TechniqueSelector::choice(NumericsTier tier) {
  Choice& choice = choices_[static_cast<size_t>(tier)];
  if (!choice.selector) {
    if (!step_) step_ = build_step(requested_, largest_shape(requested_), *machine_);
    step_->recipe = requested_;
    auto requested = std::make_unique<StepOption>(
        Candidate{.recipe = requested_}, *machine_, facts_[""], limits_,
        std::make_unique<Step>(*std::exchange(step_, std::nullopt)));
    const Graph& graph = requested->step().model.graph;
    allowed_tier(requested_, graph, requested_.codec);
    machine_->scale_untimed_steps(requested->step().costs.share);
    const Choices choices =
        choices_for(requested_, explicit_settings_, tier, graph, machine_->backend());
    SearchLimits limits = limits_;
    if (tier != allow_) {  // for its floor alone
      limits.shortlist_tried = limits.floor_shortlist_tried;
      limits.between_nodes = 0;
    }
    choice.options = options_worth_trying(std::move(requested), choices, *machine_, facts_, limits);
    std::vector<Option*> all;
    for (const auto& option : choice.options) all.push_back(option.get());
    choice.selector =
        std::make_unique<ParetoSelector>(std::move(all), Dominators::without_recompute);
  }
  return choice;
}

void TechniqueSelector::price_again() {
  if (choices_[static_cast<size_t>(allow_)].selector) step_ = requested().take();
  if (step_) step_->price();
  choices_ = {};
  facts_.clear();
}

// Where the first shape keeps everything and others have no room for that, these recompute.
std::variant<PlannedTraining, Infeasible, Misfit> TechniqueSelector::plan_shapes(
    StepOption& option, const PlanPoint& plan, Recipe& recipe) {
  const std::optional<Schedule> schedule = option.schedule_for(plan);
  bool first = true;
  const auto select = [&](const StepShape& shape) {
    if (!std::exchange(first, false)) return Selection{build_step(recipe, shape, *machine_)};
    Selection chosen = {option.take(), schedule};
    chosen.step.recipe = recipe;
    return chosen;
  };
  auto planned = plan_training(recipe, machine_, select);
  const bool other_way = option.by_budget() && recipe.planner != budget_policy();
  if (!std::holds_alternative<Infeasible>(planned) || !other_way) return planned;
  recipe.planner = budget_policy();
  first = true;
  return plan_training(recipe, machine_, select);
}

TechniqueSelector::Pick TechniqueSelector::smallest(NumericsTier tier) {
  ParetoSelector& selector = this->selector(tier);
  while (true) {
    const Pick pick = selector.smallest();
    StepOption& option = this->option(pick, tier);
    Recipe recipe = recipe_of(option, pick, pick.arena);
    // Beyond what the recipe allows, a floor says what more would bring: nothing is planned there.
    if (step_shapes(recipe).size() == 1 || option.tier() > requested_.allow) return pick;
    const auto planned = plan_shapes(option, pick, recipe);
    // Who chooses finds another in place of a smaller last microbatch that does not fit.
    const auto* const infeasible = std::get_if<Infeasible>(&planned);
    if (infeasible == nullptr || infeasible->min_bytes <= pick.arena) return pick;
    selector.raise_floor(pick.option, infeasible->min_bytes);
  }
}

std::variant<PlannedTraining, Refusal> TechniqueSelector::plan(Bytes budget) {
  const auto start = std::chrono::steady_clock::now();
  ParetoSelector& selector = this->selector(allow_);
  const std::string asked = budget_text(explicit_settings_, budget);
  const bool least = budget == kLeastMemory;
  if (least) budget = selector.smallest().arena;
  while (const auto pick = selector.within(budget)) {
    StepOption& option = this->option(*pick, allow_);
    Recipe recipe = recipe_of(option, *pick, budget);
    auto planned = plan_shapes(option, *pick, recipe);
    if (auto* const training = std::get_if<PlannedTraining>(&planned)) {
      SelectionReport report = report_of(*training, option, *pick);
      report.asked = asked;
      report.flags = flags_of_choice(recipe, option.candidate());
      report.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      training->plan_seconds = report.seconds;
      training->report = std::move(report);
      return std::move(*training);
    }
    const auto* const infeasible = std::get_if<Infeasible>(&planned);  // records of another length
    if (infeasible != nullptr && infeasible->min_bytes > budget) {
      selector.raise_floor(pick->option, infeasible->min_bytes);
    } else {
      if (selector.left() == 1) {
        internal_check(infeasible == nullptr, "a plan that fits its budget does not");
        user_error("{}", std::get<Misfit>(planned).why);
      }
      selector.drop(pick->option);
    }
    if (least) budget = selector.smallest().arena;
  }
  return refuse(budget);
}

SelectionReport TechniqueSelector::report_of(const PlannedTraining& training, StepOption& chosen,
                                             PlanPoint plan) {
  SelectionReport report;
  report.allow = allow_;
  report.risk = chosen.candidate().risk;
  report.plain_arena = requested().without_recompute().arena;
  report.plain_ms = requested().without_recompute().seconds * 1e3;
  if (training.steps.size() > 1) plan.arena = training.plan().arena;  // by any of them
  report.gains = gains_of(chosen, plan);
  for (const auto& option : options(allow_)) {
    ++report.tried;
    report.planned += option->was_planned() ? 1 : 0;
  }
  return report;
}

Refusal TechniqueSelector::refuse(Bytes budget) {
  Refusal refusal = {.allow = allow_};
  StepOption* leanest = options(allow_).front().get();
  for (const auto& option : options(allow_)) {
    if (option->bound() < leanest->bound()) leanest = option.get();
  }
  refusal.bound = leanest->bound();
  refusal.proved = budget < refusal.bound;
  refusal.searched = !refusal.proved || requested().nodes() <= kSelectionLimits.refused_nodes ||
                     !requested().by_budget();
  if (!refusal.searched) {
    const Bytes enough = requested().without_recompute().arena;
    refusal.least = {enough, fmt::format("most is needed at '{}'", leanest->needs_most_at())};
    refusal.sentence = proved_sentence(refusal, budget);
  } else {
    const Pick smallest = this->smallest(allow_);
    StepOption& option = this->option(smallest, allow_);
    refusal.least = infeasible(option.step().request(), option.smallest_plan());
    refusal.least.min_bytes = smallest.arena;
    refusal.sentence = fmt::format(
        "no plan fits {} with --allow {}: the smallest found is {} ({} bytes); no plan is below {} "
        "({} bytes); {}",
        to_string(budget), name_of(allow_), to_string(smallest.arena), smallest.arena.count,
        to_string(refusal.bound), refusal.bound.count, refusal.least.why);
    add_floor(refusal, allow_);
  }
  add_other_tiers(refusal);
  add_unlocks(refusal, requested_, requested().step().model.graph);
  return refusal;
}

void TechniqueSelector::add_floor(Refusal& refusal, NumericsTier tier) {
  const Pick least = smallest(tier);
  const Candidate& candidate = option(least, tier).candidate();
  refusal.floors.push_back({tier, least.arena, flags_of(all_changes(candidate))});
}

void TechniqueSelector::add_other_tiers(Refusal& refusal) {
  const bool searched =
      refusal.searched &&
      (!refusal.proved || requested().nodes() <= kSelectionLimits.refused_tiers_nodes);
  for (const NumericsTier tier :
       {NumericsTier::exact, NumericsTier::equivalent, NumericsTier::approximate}) {
    if (tier == allow_) continue;
    if (searched) add_floor(refusal, tier);
    if (tier < allow_) continue;
    if (!searched) {
      refusal.unlock.push_back(may_go_further(tier));
    } else if (const Bytes least = refusal.floors.back().least; least < refusal.least.min_bytes) {
      refusal.unlock.push_back(fmt::format("--allow {} goes down to {} ({} bytes)", name_of(tier),
                                           to_string(least), least.count));
    }
  }
  std::ranges::sort(refusal.floors, {}, &TierFloor::tier);
}

bool selects_techniques(const Recipe& recipe, const Settings& explicit_settings) {
  if (!recipe.fit || !recipe.memory) return false;
  user_check(!recipe.codec.automatic || !explicit_settings.contains("fit"),
             "--fit chooses codecs itself; leave --codec auto out, or choose --fit off");
  return !recipe.codec.automatic;
}

NumericsTier selected_tier(const Recipe& recipe, const Settings& explicit_settings) {
  return explicit_settings.contains("allow") ? recipe.allow : NumericsTier::equivalent;
}

}  // namespace thimble
