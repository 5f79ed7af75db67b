#include "fit/plan_within_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "fit/measured_choice.h"
#include "recipe/settings.h"
#include "report/step_report.h"
#include "train/checkpoint.h"

namespace thimble {
namespace {

nlohmann::json to_json(const FitReport& fit) {
  nlohmann::json json = to_json(static_cast<const BudgetChoices&>(fit));
  json.update({{"allow", name_of(fit.allow)},
               {"flags", fit.flags},
               {"harm", fit.harm},
               {"steps_tried", fit.tried},
               {"steps_planned", fit.planned},
               {"seconds", fit.seconds}});
  return json;
}

// The budget in bytes, whatever was asked for.
Bytes bytes_of(const Recipe& recipe, Fit& fit) {
  return recipe.memory == kLeastMemory ? fit.smallest(fit.allow()).arena : *recipe.memory;
}

}  // namespace

std::variant<PlannedByBudget, Infeasible, DoesNotFit> plan_within_budget(
    const Recipe& recipe, const Settings& said, Measuring measuring,
    const OnMeasured& on_measured) {
  constexpr double kTyped = 0.4;  // of the time: what else is chosen from is scaled like it
  const bool chooses = is_fitted(recipe, said);
  const bool measures =
      measuring == Measuring::always || (measuring == Measuring::by_budgets && chooses);
  std::optional<FirstTimes> times;
  if (measures) times.emplace(recipe).measure_step(chooses ? kTyped : 1);
  std::optional<Fit> fit;
  if (chooses) fit.emplace(recipe, said);
  if (fit && times && times->may_measure()) measure_choice(*fit, bytes_of(recipe, *fit), *times);
  if (times && times->kernels() > 0 && on_measured) on_measured(*times);
  if (!fit) {
    auto planned = plan_training(recipe);
    if (auto* const infeasible = std::get_if<Infeasible>(&planned)) return std::move(*infeasible);
    return PlannedByBudget{std::move(std::get<PlannedTraining>(planned)), {}};
  }
  auto fitted = fit->within(*recipe.memory);
  if (auto* const fault = std::get_if<DoesNotFit>(&fitted)) return std::move(*fault);
  auto& [training, chosen] = std::get<Fitted>(fitted);
  return PlannedByBudget{std::move(training), std::move(chosen)};
}

std::string why_not(const DoesNotFit& fault) {
  return fmt::format("nothing that --allow {} lets it choose fits {}: it needs {} ({} bytes); {}",
                     name_of(fault.allow), to_string(fault.budget), to_string(fault.min_bytes),
                     fault.min_bytes.count, fault.why);
}

nlohmann::json summary_of(const PlannedByBudget& planned) {
  nlohmann::json summary = summary_of(planned.training);
  if (planned.fit) summary["fit"] = to_json(*planned.fit);
  return summary;
}

void resume_choices(const std::string& out, Recipe& recipe, const Settings& said) {
  const auto folder = latest_checkpoint(out);
  if (!folder || !is_fitted(recipe, said)) return;
  const nlohmann::json begun = recipe_of_checkpoint(*folder);
  try {
    for_each_field(recipe, [&](const Field& field) {
      std::string key = field.name();
      std::ranges::replace(key, '-', '_');
      const std::string_view technique = field.about().technique;
      const bool chosen = !technique.empty() && technique != "recomputation";
      if (chosen && begun.contains(key) && !said.contains(field.name())) {
        field.set(begun[key]);
      }
    });
  } catch (const UserError& error) {
    user_error("the checkpoint in '{}' is damaged: {}", *folder, error.what());
  }
  recipe.fit = false;
}

}  // namespace thimble
