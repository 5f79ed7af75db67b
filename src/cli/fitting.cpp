#include "cli/fitting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/console.h"
#include "request/memory_limit.h"

namespace thimble {
namespace {

void say_choices(const SelectionReport& fit, const PlannedTraining& training) {
  say("fit: {} in {} ({}); as typed, everything kept: {}, {:.1f} ms\n",
      training.full().model.options.name, to_string(*training.recipe.memory),
      name_of(training.tier), to_string(fit.plain_arena), fit.plain_ms);
  for (const TechniqueGain& share : fit.gains) {
    const bool saves = share.saved >= Bytes();
    say("  {:<56}{} {:>9}, {:+.1f} ms  ({}; {})\n", share.what, saves ? "saves" : "takes",
        to_string(saves ? share.saved : Bytes() - share.saved), share.ms_paid, share.tier,
        share.flags);
  }
  if (fit.gains.empty()) say("  nothing has to be done for it\n");
}

}  // namespace

std::shared_ptr<Machine> open_machine(const Request& request, Profiles profiles, World* world) {
  const Recipe& recipe = request.recipe;
  const bool chooses = selects_techniques(recipe, request.explicit_settings);
  const bool may = world == nullptr && (chooses || profiles == Profiles::always);
  return Machine::open(recipe, may ? usual_profiling(recipe) : Profiling());
}

void settle_budget(Request& request, Machine& machine, World* world) {
  const auto limit = resolve_budget(request, machine.backend(), world);
  if (!limit || (world != nullptr && !world->first())) return;
  const std::string shared =
      world != nullptr ? fmt::format(" for each of {} ranks", world->size()) : "";
  say("--memory auto: {} ({} bytes){}: {} is {}, of which {} stay free\n", to_string(limit->budget),
      limit->budget.count, shared, limit->from, to_string(limit->available),
      to_string(limit->margin));
}

std::optional<PlannedTraining> plan_asked(Request& request, const std::shared_ptr<Machine>& machine,
                                          bool json, World* world) {
  settle_budget(request, *machine, world);
  const bool speaks = world == nullptr || world->first();
  auto planned = choose_and_plan(request.recipe, request.explicit_settings, machine);
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
