#include "report/technique_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace thimble {
namespace {

constexpr std::string_view kConvention =
    "baseline = weights + gradients + optimizer state + activations saved for backward (fp32, relu "
    "in place), added up on paper. model = weights, optimizer = gradients at the peak + state, "
    "activation = values kept from forward to backward. The arena holds everything";

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double count(Bytes bytes) { return static_cast<double>(bytes.count); }

// Powers of ten, as the literature counts.
struct Unit {
  std::string_view name;
  double bytes = 1;

  std::string of(Bytes amount) const { return fmt::format("{:.2f}", count(amount) / bytes); }
};

Unit unit_for(Bytes amount) {
  constexpr double kMega = 1e6;
  return count(amount) >= kMega ? Unit{"MB", kMega} : Unit{"kB", 1e3};
}

double ratio_of(const TechniqueReport& report, const TechniqueRow& row) {
  return share(count(report.baseline.total()), count(row.arena));
}

double extra_flops_of(const TechniqueReport& report, const TechniqueRow& row) {
  return share(row.flops, report.rows.front().flops) - 1;
}

nlohmann::json terms_json(const MemoryTerms& terms) {
  return {{"model_bytes", terms.model.count},
          {"optimizer_bytes", terms.optimizer.count},
          {"activation_bytes", terms.activation.count}};
}

}  // namespace

std::string technique_table(const TechniqueReport& report) {
  const Unit unit = unit_for(report.baseline.total());
  std::string text = fmt::format("  {:<34}{:>9}{:>11}{:>12}{:>10}{:>14}{:>9}{:>13}  {}\n",
                                 fmt::format("planned, in {}", unit.name), "model", "optimizer",
                                 "activation", "arena", "bytes", "ratio", "extra FLOPs", "tier");
  const auto terms = [&](const std::string& name, const MemoryTerms& t) {
    return fmt::format("  {:<34}{:>9}{:>11}{:>12}", name, unit.of(t.model), unit.of(t.optimizer),
                       unit.of(t.activation));
  };
  text += terms("baseline, on paper", report.baseline) +
          fmt::format("{:>10}{:>14}{:>8.1f}x\n", unit.of(report.baseline.total()),
                      report.baseline.total().count, 1.0);
  for (const TechniqueRow& row : report.rows) {
    if (!row.refused.empty()) {
      text += fmt::format("  {:<34}  not alone: {}\n", row.name, row.refused);
      continue;
    }
    text += terms(row.name, row.terms) + fmt::format("{:>10}{:>14}{:>8.1f}x{:>+12.1f}%  {}\n",
                                                     unit.of(row.arena), row.arena.count,
                                                     ratio_of(report, row),
                                                     100 * extra_flops_of(report, row), row.tier);
  }
  return text + fmt::format("  {}\n", kConvention);
}

nlohmann::json technique_json(const TechniqueReport& report) {
  nlohmann::json baseline = terms_json(report.baseline);
  baseline["total_bytes"] = report.baseline.total().count;
  nlohmann::json rows = nlohmann::json::array();
  for (const TechniqueRow& row : report.rows) {
    if (!row.refused.empty()) {
      rows.push_back({{"name", row.name}, {"refused", row.refused}});
      continue;
    }
    nlohmann::json json = terms_json(row.terms);
    json.update({{"name", row.name},
                 {"arena_bytes", row.arena.count},
                 {"ratio_to_baseline", ratio_of(report, row)},
                 {"saved_share", 1 - share(count(row.arena), count(report.rows.front().arena))},
                 {"flops", row.flops},
                 {"extra_flops_ratio", extra_flops_of(report, row)},
                 {"tier", row.tier}});
    rows.push_back(std::move(json));
  }
  return {{"convention", kConvention}, {"baseline", baseline}, {"rows", rows}};
}

}  // namespace thimble
