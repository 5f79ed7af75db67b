#include "survey/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/attempt.h"
#include "base/error.h"
#include "pipeline/step_size.h"
#include "select/candidates.h"
#include "select/choose.h"

namespace thimble {
namespace {

struct Way {
  std::string_view name;
  Settings settings;
};

const std::vector<Way>& all_ways() {
  static const std::vector<Way> ways = {
      {"all weights, fp32", {}},
      {"all weights, bf16, state in 8 bits",
       {{"precision", "bf16"}, {"rounding", "stochastic"}, {"state-bits", 8}}},
      {"LoRA, fp32", {{"lora", "rank=16,alpha=32"}}},
      {"LoRA, bf16", {{"lora", "rank=16,alpha=32"}, {"precision", "bf16"}}},
      {"LoRA, int8", {{"lora", "rank=16,alpha=32"}, {"precision", "bf16"}, {"frozen", "int8"}}},
      {"LoRA, NF4", {{"lora", "rank=16,alpha=32"}, {"precision", "bf16"}, {"frozen", "nf4"}}},
  };
  return ways;
}

// The rows differ in these.
constexpr std::array<std::string_view, 8> kCompared = {
    "precision", "rounding", "state-bits", "frozen", "master", "planner", "lengths", "tokens"};

// Techniques that a row has as its name says, and no other.
constexpr std::array<std::string_view, 6> kChangesResults = {"precision",  "rounding", "frozen",
                                                             "state-bits", "codec",    "density"};

WayPoint point_of(const PlannedTraining& planned) {
  return {planned.plan().arena, process_bytes(planned),
          priced_as_a_whole(planned).predicted_seconds * 1e3};
}

class Comparison {
 public:
  Comparison(const Settings& explicit_settings, std::shared_ptr<Machine> machine,
             const SearchLimits& limits)
      : explicit_(explicit_settings), machine_(std::move(machine)), limits_(limits) {
    for (const std::string_view name : {"length", "memory", "fit", "allow"}) {
      explicit_.erase(std::string(name));
    }
    if (const auto typed = explicit_.extract("lora")) adapters_ = typed.mapped();
  }

  WayRow row_of(const Way& way, int64_t length) const {
    Settings changes = way.settings;
    if (changes.contains("lora") && !adapters_.is_null()) changes["lora"] = adapters_;
    WayRow row = {.name = std::string(way.name), .flags = flags_of(changes), .length = length};
    const auto planned = attempt([&] {
      Settings settings = explicit_;
      settings.insert(changes.begin(), changes.end());
      settings["length"] = length;
      row.kept = kept(settings);
      row.least = least(settings);
      return true;
    });
    if (const auto* refused = std::get_if<Refused>(&planned)) row.refused = refused->why;
    return row;
  }

 private:
  static Recipe recipe_of(const Settings& settings) {
    Recipe recipe;
    configure(recipe, settings);
    check(recipe);
    return recipe;
  }

  std::optional<WayPoint> kept(const Settings& settings) const {
    const auto planned = plan_training(recipe_of(settings), machine_);
    const auto* const ready = std::get_if<PlannedTraining>(&planned);
    return ready != nullptr ? std::optional(point_of(*ready)) : std::nullopt;
  }

  // With the same results: techniques that may change them are rows of their own.
  std::optional<WayPoint> least(Settings settings) const {
    settings["memory"] = "least";
    settings["fit"] = true;
    const Recipe recipe = recipe_of(settings);
    settings["allow"] = name_of(NumericsTier::approximate);
    for (const std::string_view name : kChangesResults) settings.try_emplace(std::string(name));
    const auto planned = choose_and_plan(recipe, settings, machine_, limits_);
    const auto* const ready = std::get_if<PlannedTraining>(&planned);
    return ready != nullptr ? std::optional(point_of(*ready)) : std::nullopt;
  }

  Settings explicit_;
  nlohmann::json adapters_;
  const std::shared_ptr<Machine> machine_;
  const SearchLimits& limits_;
};

// Whether the budget holds everything kept, holds it with recomputation, or does not hold it.
std::string_view fit_of(const WayRow& row, Bytes budget) {
  if (row.kept && row.kept->arena <= budget) return "yes";
  return row.least && row.least->arena <= budget ? "recomputing" : "no";
}

nlohmann::json json_of(const WayPoint& point) {
  return {{"arena_bytes", point.arena.count},
          {"process_bytes", point.process.count},
          {"predicted_step_ms", point.milliseconds}};
}

}  // namespace

WayTable compare_ways(const Recipe& requested, const Settings& explicit_settings,
                      const std::vector<int64_t>& lengths, const std::shared_ptr<Machine>& machine,
                      const SearchLimits& limits) {
  for (const std::string_view name : kCompared) {
    user_check(!explicit_settings.contains(name),
               "--table compares ways to train, --{0} among what they differ in; leave --{0} out",
               name);
  }
  Recipe copy = requested;
  user_check(find_field(fields_of(copy), "length") != nullptr,
             "--table compares lengths, and {} has none; leave it out", requested.model.name);
  complete_model(copy.model);
  WayTable table = {.model = requested.model.name, .batch = copy.model.batch};
  if (requested.memory > kLeastMemory) table.budget = requested.memory;
  const Comparison comparison(explicit_settings, machine, limits);
  for (const Way& way : all_ways()) {
    for (const int64_t length : lengths) table.rows.push_back(comparison.row_of(way, length));
  }
  return table;
}

std::vector<int64_t> usual_lengths(const Recipe& requested) {
  constexpr size_t kMost = 4;
  ModelOptions model = requested.model;
  complete_model(model);
  std::vector<int64_t> lengths;
  const auto takes = [&](int64_t length) {
    return if_allowed([&] {
             ModelOptions longer = requested.model;
             longer.length = length;
             complete_model(longer);
             return true;
           })
        .has_value();
  };
  for (int64_t length = model.length; lengths.size() < kMost && takes(length); length *= 2) {
    lengths.push_back(length);
  }
  return lengths;
}

std::string way_text(const WayTable& table) {
  const bool budget = table.budget.has_value();
  std::string text =
      fmt::format("{}, batch {}: arena and predicted ms of a step\n", table.model, table.batch);
  text += fmt::format("  {:<36}{:>8}{:>18}{:>12}{:>14}{:>12}{}\n", "", "length", "everything kept",
                      "ms", "least", "ms",
                      budget ? fmt::format("   in {}", to_string(*table.budget)) : "");
  const auto point = [](const std::optional<WayPoint>& p) {
    return p ? std::pair(to_string(p->arena), fmt::format("{:.0f}", p->milliseconds))
             : std::pair(std::string("-"), std::string("-"));
  };
  for (const WayRow& row : table.rows) {
    if (!row.refused.empty()) {
      text += fmt::format("  {:<36}{:>8}  {}\n", row.name, row.length, row.refused);
      continue;
    }
    const auto [kept, kept_ms] = point(row.kept);
    const auto [least, least_ms] = point(row.least);
    text += fmt::format("  {:<36}{:>8}{:>18}{:>12}{:>14}{:>12}{}\n", row.name, row.length, kept,
                        kept_ms, least, least_ms,
                        budget ? fmt::format("   {}", fit_of(row, *table.budget)) : "");
  }
  return text;
}

nlohmann::json way_json(const WayTable& table) {
  nlohmann::json rows = nlohmann::json::array();
  for (const WayRow& row : table.rows) {
    nlohmann::json json = {{"name", row.name}, {"flags", row.flags}, {"length", row.length}};
    if (!row.refused.empty()) json["refused"] = row.refused;
    if (row.kept) json["kept"] = json_of(*row.kept);
    if (row.least) json["least"] = json_of(*row.least);
    if (table.budget) json["fits"] = fit_of(row, *table.budget) != "no";
    rows.push_back(std::move(json));
  }
  nlohmann::json json = {{"model", table.model}, {"batch", table.batch}, {"rows", rows}};
  if (table.budget) json["budget_bytes"] = table.budget->count;
  return json;
}

}  // namespace thimble
