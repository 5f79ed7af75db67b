#include "survey/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/printable.h"
#include "pipeline/check_plan_file.h"
#include "pipeline/training_graph.h"
#include "recipe/settings.h"
#include "report/page.h"
#include "survey/curves.h"

namespace thimble {
namespace {

// The last part of each folder's path; of those that share it, all of the path.
std::vector<std::string> names_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    std::filesystem::path path = std::filesystem::path(run.folder).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    names.push_back(path.filename().string());
  }
  std::vector<std::string> told_apart = names;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(names, names[i]) > 1) told_apart[i] = runs[i].folder;
  }
  return told_apart;
}

// By field, as it would be typed; what has no effect apart. A selected setting is shown as asked for.
std::map<std::string, std::string> fields_by_name(Recipe recipe,
                                                  const std::optional<SelectionRecord>& choices) {
  std::map<std::string, std::string> texts;
  for_each_field(recipe, [&](const Field& field) {
    if (field.about().flag || field.name() == "model") {
      texts[field.name()] = field.get().is_null() || !field.about().unused_reason.empty()
                                ? ""
                                : as_asked(choices, field.name()).value_or(field.text());
    }
  });
  return texts;
}

// Where not all are the same, in the order of the first run's list. A field that only some models have, at its
// usual value, goes without saying: their names differ.
std::vector<std::string> differing(const std::vector<RunRecord>& runs,
                                   const std::vector<std::map<std::string, std::string>>& texts) {
  std::vector<Settings> unusual;
  for (const RunRecord& run : runs) unusual.push_back(settings_of(run.plan.recipe));
  std::vector<std::string> names;
  const auto add = [&](const Field& field) {
    const std::string& name = field.name();
    std::optional<std::string> first;
    bool same = true, everywhere = true, said = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto found = texts[i].find(name);
      everywhere = everywhere && found != texts[i].end();
      if (found == texts[i].end()) continue;
      same = same && found->second == first.value_or(found->second);
      first = found->second;
      said = said || unusual[i].contains(name);
    }
    const bool differs = !same || (!everywhere && said);
    if (differs && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const RunRecord& run : runs) {
    Recipe recipe = run.plan.recipe;
    for_each_field(recipe, add);
  }
  return names;
}

std::optional<double> last_of(const std::vector<nlohmann::json>& lines, const std::string& key) {
  for (size_t i = lines.size(); i-- > 0;) {
    const auto found = lines[i].find(key);
    if (found != lines[i].end() && found->is_number()) return found->get<double>();
  }
  return std::nullopt;
}

std::string cell(const std::optional<double>& value, bool share) {
  if (!value) return "-";
  return share ? fmt::format("{:.2f}%", 100 * *value) : fmt::format("{:.4f}", *value);
}

using Rows = std::vector<std::vector<std::string>>;

// The first line names the columns.
Rows rows_of(const RunComparison& all) {
  Rows rows = {{"run", "steps", "loss"}};
  if (!all.metric.empty()) rows[0].push_back(all.metric);
  for (const char* name : {"arena", "ms/step", "time", "tier"}) rows[0].emplace_back(name);
  for (const std::string& field : all.fields) rows[0].push_back(field);
  for (const ComparedRun& run : all.runs) {
    std::vector<std::string> row = {run.name, fmt::format("{}", run.steps),
                                    cell(run.loss, false) + (run.loss && !run.tested ? "*" : "")};
    if (!all.metric.empty()) row.push_back(cell(run.metric, all.share));
    row.push_back(to_string(run.arena));
    row.push_back(run.step_ms > 0 ? fmt::format("{:.4g}", run.step_ms) : "-");
    row.push_back(run.seconds > 0 ? fmt::format("{:.4g} s", run.seconds) : "-");
    row.emplace_back(name_of(run.tier));
    for (const std::string& value : run.fields) row.push_back(value.empty() ? "-" : value);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

RunComparison compare_runs(const std::vector<RunRecord>& runs) {
  RunComparison all;
  std::vector<std::map<std::string, std::string>> texts;
  for (const RunRecord& run : runs)
    texts.push_back(fields_by_name(run.plan.recipe, run.plan.choices));
  all.fields = differing(runs, texts);
  const std::vector<std::string> names = names_of(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    check_on_any_device(run.plan, run.folder);
    const ShapedPlan& shaped = run.plan.plans.front();
    const Recipe& recipe = run.plan.recipe;
    const TrainingGraph training = make_graph(recipe, shaped.shape);
    ComparedRun one = {.name = names[i], .model = recipe.model.name};
    one.arena = shaped.plan.arena;
    one.tier = tier_of(training.model.graph, most_microbatches(recipe), recipe.optimizer);
    if (!run.metrics.empty()) one.steps = run.metrics.back()["step"].get<int64_t>();
    one.loss = last_of(run.metrics, "test_loss");
    one.tested = one.loss.has_value();
    if (!one.tested) one.loss = last_of(run.metrics, "loss");
    const std::vector<Metric>& metrics = training.model.metrics;
    const std::string metric = metrics.empty() ? "" : metrics.front().name;
    if (i == 0 && !metrics.empty()) all.share = metrics.front().share;
    all.metric = i == 0 || metric == all.metric ? metric : "";
    if (!metric.empty()) one.metric = last_of(run.metrics, "test_" + metric);
    one.step_ms = 1e3 * median_step_seconds(run.metrics);
    one.seconds = last_of(run.metrics, "seconds").value_or(0);
    for (const std::string& field : all.fields) {
      const auto found = texts[i].find(field);
      one.fields.push_back(found == texts[i].end() ? "" : found->second);
    }
    one.curves = curves_of(run.metrics, metrics);
    all.runs.push_back(std::move(one));
  }
  return all;
}

std::string comparison_text(const RunComparison& comparison) {
  Rows rows = rows_of(comparison);
  std::vector<size_t> widths(rows[0].size(), 0);
  for (auto& row : rows) {
    for (std::string& text : row) text = printable(text);
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t c = 1; c < row.size(); ++c) line += fmt::format("  {:>{}}", row[c], widths[c]);
    text += line + "\n";
  }
  const bool untested = std::ranges::any_of(
      comparison.runs, [](const ComparedRun& run) { return run.loss && !run.tested; });
  return untested ? text + "* of the last step: not tested yet\n" : text;
}

nlohmann::json comparison_json(const RunComparison& comparison) {
  nlohmann::json runs = nlohmann::json::array();
  for (const ComparedRun& run : comparison.runs) {
    nlohmann::json json = {{"name", run.name},
                           {"model", run.model},
                           {"steps", run.steps},
                           {"tested", run.tested},
                           {"arena_bytes", run.arena.count},
                           {"step_ms", run.step_ms},
                           {"seconds", run.seconds},
                           {"tier", name_of(run.tier)},
                           {"fields", nlohmann::json::object()}};
    json["loss"] = run.loss ? nlohmann::json(*run.loss) : nlohmann::json();
    if (!comparison.metric.empty()) {
      json[comparison.metric] = run.metric ? nlohmann::json(*run.metric) : nlohmann::json();
    }
    for (size_t f = 0; f < comparison.fields.size(); ++f) {
      json["fields"][comparison.fields[f]] = run.fields[f];
    }
    runs.push_back(std::move(json));
  }
  return {{"differing", comparison.fields}, {"metric", comparison.metric}, {"runs", runs}};
}

std::string comparison_page(const RunComparison& comparison) {
  std::vector<Curve> curves;
  for (const ComparedRun& run : comparison.runs) {
    for (Curve curve : run.curves) {
      if (curve.name == "training" || curve.name == "test")
        curve.chart = curve.name + " " + curve.chart;
      curve.name = run.name;
      curves.push_back(std::move(curve));
    }
  }
  const nlohmann::json data = {{"format", "thimble-comparison-1"},
                               {"rows", rows_of(comparison)},
                               {"differing", comparison.fields.size()},
                               {"curves", curves_json(curves)}};
  return make_page("compare", fmt::format("{} runs compared", comparison.runs.size()), data);
}

}  // namespace thimble
