#include "cli/fitting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/console.h"
#include "comm/agreement.h"
#include "fit/memory_limit.h"

namespace thimble {
namespace {

void say_choices(const FitReport& fit, const PlannedTraining& training) {
  say("fit: {} in {} ({}); as typed, everything kept: {}, {:.1f} ms\n",
      training.full().model.options.name, to_string(*training.recipe.memory),
      name_of(training.tier), to_string(fit.plain_arena), fit.plain_ms);
  for (const TechniqueShare& share : fit.shares) {
    const bool saves = share.saved >= Bytes();
    say("  {:<56}{} {:>9}, {:+.1f} ms  ({}; {})\n", share.what, saves ? "saves" : "takes",
        to_string(saves ? share.saved : Bytes() - share.saved), share.ms_paid, share.tier,
        share.flags);
  }
  if (fit.shares.empty()) say("  nothing has to be done for it\n");
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
  say("thimble: {}\n", why_not(fault));
  for (const TierFloor& floor : fault.floors) {
    say("  {:<12} at least {:>10} ({} bytes){}{}\n", name_of(floor.tier), to_string(floor.least),
        floor.least.count, floor.flags.empty() ? "" : ": ", floor.flags);
  }
  if (!fault.unlock.empty()) say("  to go further down: {}\n", fmt::join(fault.unlock, "; "));
  say("  or give more --memory\n");
}

}  // namespace

Recipe with_budget_in_bytes(Recipe recipe, World* world) {
  if (recipe.memory != kAutomaticMemory) return recipe;
  const auto backend = make_backend(recipe.device, recipe.on);
  const MemoryLimit limit = memory_limit(*backend, recipe);
  Bytes budget = limit.budget;
  std::string shared;
  if (world != nullptr) {
    if (!backend->remote()) budget = Bytes(budget.count / world->here());
    const auto all = gathered(world->ranks(), static_cast<double>(budget.count));
    budget = Bytes(static_cast<int64_t>(*std::ranges::min_element(all)));
    shared = fmt::format(" for each of {} ranks", world->size());
  }
  if (world == nullptr || world->first()) {
    say("--memory auto: {} ({} bytes){}: {} is {}, of which {} stay free\n", to_string(budget),
        budget.count, shared, limit.from, to_string(limit.available), to_string(limit.margin));
  }
  recipe.memory = budget;
  return recipe;
}

std::optional<PlannedByBudget> plan_asked(const Resolved& resolved, bool json, Measuring measuring,
                                          World* world) {
  const Recipe recipe = with_budget_in_bytes(resolved.recipe, world);
  const bool speaks = world == nullptr || world->first();
  if (world != nullptr) measuring = Measuring::never;
  auto planned = plan_within_budget(recipe, resolved.said, measuring, [](const FirstTimes& times) {
    say("measured {} kernel{} in {:.1f} s, for times one can believe (kept in {}; `--costs "
        "modelled` "
        "leaves it out)\n",
        times.kernels(), times.kernels() == 1 ? "" : "s", times.seconds(), times.file());
  });
  if (const auto* const fault = std::get_if<DoesNotFit>(&planned)) {
    if (speaks) report(*fault, json);
    return std::nullopt;
  }
  if (const auto* const infeasible = std::get_if<Infeasible>(&planned)) {
    if (speaks) report(recipe, *infeasible, json);
    return std::nullopt;
  }
  auto& ready = std::get<PlannedByBudget>(planned);
  if (!json && speaks && ready.fit) say_choices(*ready.fit, ready.training);
  return std::move(ready);
}

}  // namespace thimble
