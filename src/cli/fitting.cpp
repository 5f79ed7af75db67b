#include "cli/fitting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/console.h"
#include "fit/first_times.h"
#include "fit/memory_limit.h"

namespace thimble {
namespace {

void say_choices(const FitReport& fit, const PlannedTraining& training) {
  say("fit: {} in {} ({}); as typed, everything kept: {}, {:.1f} ms\n",
      training.full().model.options.name, to_string(*training.recipe.memory),
      name_of(training.tier), to_string(fit.plain_arena), fit.plain_ms);
  for (const TechniqueShare& share : fit.shares) {
    const bool saves = share.saved >= Bytes();
    say("  {:<48}{} {:>9}, {:+.1f} ms  ({}; {})\n", share.what, saves ? "saves" : "takes",
        to_string(saves ? share.saved : Bytes() - share.saved), share.ms_paid, share.tier,
        share.flags);
  }
  if (fit.shares.empty()) say("  nothing has to be done for it\n");
}

nlohmann::json to_json(const FitReport& fit) {
  nlohmann::json choices = nlohmann::json::array();
  for (const TechniqueShare& share : fit.shares) choices.push_back(to_json(share));
  return {{"allow", name_of(fit.allow)},
          {"choices", choices},
          {"plain_arena_bytes", fit.plain_arena.count},
          {"plain_step_ms", fit.plain_ms},
          {"flags", fit.flags},
          {"steps_tried", fit.tried},
          {"steps_planned", fit.planned},
          {"seconds", fit.seconds}};
}

void report(const DoesNotFit& fault, bool json) {
  if (json) {
    nlohmann::json tiers = nlohmann::json::object();
    for (const TierFloor& floor : fault.floors) {
      tiers[std::string(name_of(floor.tier))] = {{"min_bytes", floor.least.count},
                                                 {"flags", floor.flags}};
    }
    print_json({{"infeasible", true},
                {"min_bytes", fault.min_bytes.count},
                {"why", fault.why},
                {"allow", name_of(fault.allow)},
                {"tiers", tiers},
                {"unlock", fault.unlock}});
  }
  say("thimble: nothing that --allow {} lets it choose fits {}: it needs {} ({} bytes); {}\n",
      name_of(fault.allow), to_string(fault.budget), to_string(fault.min_bytes),
      fault.min_bytes.count, fault.why);
  for (const TierFloor& floor : fault.floors) {
    say("  {:<12} at least {:>10} ({} bytes){}{}\n", name_of(floor.tier), to_string(floor.least),
        floor.least.count, floor.flags.empty() ? "" : ": ", floor.flags);
  }
  if (!fault.unlock.empty()) say("  to go further down: {}\n", fmt::join(fault.unlock, "; "));
  say("  or give more --memory\n");
}

}  // namespace

Recipe with_budget_in_bytes(Recipe recipe) {
  if (recipe.memory != kAutomaticMemory) return recipe;
  const MemoryLimit limit = memory_limit(*make_backend(recipe.device, recipe.on));
  say("--memory auto: {} ({} bytes): {} is {}, of which {} stay free\n", to_string(limit.budget),
      limit.budget.count, limit.from, to_string(limit.available), to_string(limit.margin));
  recipe.memory = limit.budget;
  return recipe;
}

std::optional<PlannedByCommand> plan_asked(const Resolved& resolved, bool json,
                                           Measuring measuring) {
  const Recipe recipe = with_budget_in_bytes(resolved.recipe);
  const bool fitted_too = is_fitted(recipe, resolved.said);
  if (fitted_too || measuring == Measuring::always) {
    if (const auto first = measure_first_times(recipe)) {
      say("measured {} kernels in {:.1f} s, for times one can believe (kept in {}; `--costs "
          "modelled` leaves it out)\n",
          first->kernels, first->seconds, first->file);
    }
  }
  if (!fitted_too) {
    auto planned = plan_or_explain(recipe, json);
    if (!planned) return std::nullopt;
    return PlannedByCommand{std::move(*planned), {}};
  }
  Fit fit(recipe, resolved.said);
  auto fitted = fit.within(*recipe.memory);
  if (const auto* const fault = std::get_if<DoesNotFit>(&fitted)) {
    report(*fault, json);
    return std::nullopt;
  }
  auto& [training, chosen] = std::get<Fitted>(fitted);
  if (!json) say_choices(chosen, training);
  return PlannedByCommand{std::move(training), std::move(chosen)};
}

nlohmann::json summary_of(const PlannedByCommand& planned) {
  nlohmann::json summary = summary_of(planned.training);
  if (planned.fit) summary["fit"] = to_json(*planned.fit);
  return summary;
}

}  // namespace thimble
