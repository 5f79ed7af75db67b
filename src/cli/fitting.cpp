#include "cli/fitting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/console.h"
#include "comm/agreement.h"
#include "request/memory_limit.h"

namespace thimble {
namespace {

void say_choices(const SelectionReport& fit, const PlannedTraining& training) {
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

}  // namespace

std::shared_ptr<Machine> open_machine(const Resolved& resolved, Profiles profiles, World* world) {
  const Recipe& recipe = resolved.recipe;
  const bool may = world == nullptr &&
                   (profiles == Profiles::always || selects_techniques(recipe, resolved.said));
  return Machine::open(recipe, may ? usual_profiling(recipe) : Profiling());
}

Recipe with_budget_in_bytes(Recipe recipe, Machine& machine, World* world) {
  if (recipe.memory != kAutomaticMemory) return recipe;
  const MemoryLimit limit = memory_limit(machine.backend(), recipe);
  Bytes budget = limit.budget;
  std::string shared;
  if (world != nullptr) {
    if (!machine.backend().has_device_memory()) budget = Bytes(budget.count / world->here());
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

std::optional<PlannedTraining> plan_asked(const Resolved& resolved,
                                          const std::shared_ptr<Machine>& machine, bool json,
                                          World* world) {
  const Recipe recipe = with_budget_in_bytes(resolved.recipe, *machine, world);
  const bool speaks = world == nullptr || world->first();
  auto planned = choose_and_plan(recipe, resolved.said, machine);
  if (machine->profiled_kernels() > 0) {
    say("measured {} kernel{} in {:.1f} s, for times one can believe (kept in {}; `--costs "
        "modelled` "
        "leaves it out)\n",
        machine->profiled_kernels(), machine->profiled_kernels() == 1 ? "" : "s",
        machine->profiling_seconds(), machine->profiling_file());
  }
  if (const auto* const refusal = std::get_if<Refusal>(&planned)) {
    if (speaks) report(*refusal, json);
    return std::nullopt;
  }
  auto& ready = std::get<PlannedTraining>(planned);
  if (!json && speaks && ready.report) say_choices(*ready.report, ready);
  return std::move(ready);
}

}  // namespace thimble
