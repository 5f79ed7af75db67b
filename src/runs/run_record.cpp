#include "runs/run_record.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "pipeline/check_plan_file.h"
#include "recipe/plan_file.h"
#include "recipe/settings.h"

namespace thimble {
namespace {

constexpr const char* kRecipe = "/recipe.toml";
constexpr const char* kPlan = "/plan.json";
constexpr const char* kTrace = "/trace.json";
constexpr const char* kMetrics = "/metrics.jsonl";
constexpr std::string_view kTraceFormat = "thimble-trace-1";
constexpr Bytes kLargestMetrics = Bytes(256 << 20);

// Calls body(line, number) for every line of the file that ends; the last may be half written, of a run
// that was killed: then false. Any line but an object with a step becomes null.
template <class Body>
bool for_each_line(const std::string& path, const Body& body) {
  if (!exists(path)) return true;
  const std::string text = read_text(path, "metrics of a run", kLargestMetrics);
  int64_t number = 0;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    nlohmann::json line;
    try {
      line = parse_json(std::string_view(text).substr(at, end - at));
    } catch (const UserError&) {
    }
    const bool whole =
        line.is_object() && line.contains("step") && line["step"].is_number_integer();
    body(whole ? std::move(line) : nlohmann::json(), ++number);
  }
  return text.ends_with('\n') || text.empty();
}

// Of one variant: every call of its plan, over the microbatches of the step.
nlohmann::json part_json(const TimedPart& part) {
  const PlannedStep& step = part.step;
  nlohmann::json planned = nlohmann::json::array(), measured = nlohmann::json::array();
  for (size_t s = 0; s < step.plan.calls.size(); ++s) {
    const NodeId node = step.plan.calls[s].node;
    const bool every_time = step.model.graph[node].phase == Phase::per_microbatch;
    const int runs = every_time ? part.runs : part.ends_step ? 1 : 0;
    planned.push_back(1e3 * runs * step.costs.nodes[node.at()].seconds);
    measured.push_back(1e3 * part.trace.call_seconds[s]);
  }
  return {{"rows", step.shape.rows},
          {"length", step.shape.length},
          {"microbatches", part.runs},
          {"planned_ms", planned},
          {"measured_ms", measured}};
}

// Empty where it cannot be read.
std::string text_of(const std::string& path) {
  try {
    return exists(path) ? read_text(path, "a plan file", kLargestJsonFile) : "";
  } catch (const UserError&) {
    return "";
  }
}

std::vector<double> in_seconds(const nlohmann::json& milliseconds) {
  std::vector<double> seconds;
  for (const nlohmann::json& ms : milliseconds) seconds.push_back(ms.get<double>() / 1e3);
  return seconds;
}

// Of the variant that `of` is the plan of; none: the step that was timed had no such microbatch.
std::optional<TraceRecord> read_trace(const std::string& path, const ShapedPlan& of) {
  std::string fault;
  try {
    const nlohmann::json json = parse_json(read_text(path, "the trace of a run", kLargestJsonFile));
    user_check(json.at("format") == kTraceFormat, "it is of another version");
    for (const nlohmann::json& part : json.at("parts")) {
      if (part.at("rows") != of.shape.rows || part.at("length") != of.shape.length) continue;
      TraceRecord trace = {json.at("step").get<int64_t>(), json.at("costs").get<std::string>(),
                           in_seconds(part.at("planned_ms")), in_seconds(part.at("measured_ms"))};
      const size_t calls = of.plan.calls.size();
      user_check(trace.measured_seconds.size() == calls && trace.planned_seconds.size() == calls,
                 "it is of another plan than the run's");
      return trace;
    }
    return std::nullopt;
  } catch (const nlohmann::json::exception& error) {
    fault = why_refused(error);
  } catch (const UserError& error) {
    fault = error.what();
  }
  user_error("'{}' is no trace of the run's plan: {}; remove it to report on the rest", path,
             fault);
}

// With what was asked for, where a budget chose.
std::string recipe_text(const PlannedTraining& planned) {
  std::string text;
  if (planned.report) {
    const std::string asked = as_asked(*planned.report, "memory").value_or("a budget");
    text = fmt::format(
        "# memory = \"{}\" was asked for, and this is what it chose: fit = \"off\" leaves it so.\n",
        printable(asked));
  }
  return text + to_toml(settings_of(planned.recipe));
}

// A path of a run's checkpoint stands for the run.
void check_is_no_checkpoint(const std::string& folder) {
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string run = path.parent_path().string();
  user_check(run.empty() || !exists(run + kPlan) || exists(folder + kPlan),
             "'{}' is a checkpoint, and not the folder of a run; choose '{}'", folder, run);
}

}  // namespace

MetricsFile::MetricsFile(const std::string& folder, int64_t resumed_at) {
  const std::string path = folder + kMetrics;
  std::string kept;
  if (resumed_at > 0) {
    for_each_line(path, [&](const nlohmann::json& line, int64_t) {
      if (line.is_null() || line["step"].get<int64_t>() > resumed_at) return;
      kept += json_text(line) + "\n";
      if (line.contains("seconds") && line["seconds"].is_number()) {
        seconds_before_ = line["seconds"].get<double>();
      }
    });
  }
  write_file(path, kept);
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  user_check(file.get() >= 0, "cannot write to '{}': {}", path, why_refused(errno));
  file_.emplace(std::move(file), path);
}

void MetricsFile::add(const nlohmann::json& line) { file_->add(json_text(line) + "\n"); }

int64_t steps_per_line(int64_t steps) {
  constexpr int64_t kMostLines = 10'000;
  return std::max<int64_t>(1, (steps + kMostLines - 1) / kMostLines);
}

void record_plan(const std::string& folder, const PlannedTraining& planned) {
  const std::string before = text_of(folder + kPlan);
  write_file(folder + kRecipe, recipe_text(planned));
  save_plan(folder + kPlan, planned);
  std::error_code ignored;
  if (before.empty() || before != text_of(folder + kPlan)) {
    std::filesystem::remove(folder + kTrace, ignored);
  }
}

void record_trace(const std::string& folder, const std::vector<TimedPart>& parts, int64_t number) {
  nlohmann::json json = {{"format", kTraceFormat},
                         {"step", number},
                         {"costs", parts.front().step.costs.source},
                         {"parts", nlohmann::json::array()}};
  for (const TimedPart& part : parts) {
    if (part.trace.call_seconds.empty()) continue;  // of another length than the step was
    json["parts"].push_back(part_json(part));
  }
  write_file(folder + kTrace, json_text(json) + "\n");
}

RunRecord read_run(const std::string& folder) {
  std::error_code ignored;
  user_check(std::filesystem::is_directory(folder, ignored), "'{}' is no folder of a run", folder);
  check_is_no_checkpoint(folder);
  user_check(exists(folder + kPlan),
             "'{}' holds no {}: it is no folder of a run, or its run had not begun, or was of a "
             "version that wrote none; start it again with `thimble train --resume --out {}`",
             folder, kPlan + 1, folder);
  RunRecord run = {.folder = folder, .plan = load_plan(folder + kPlan)};
  if (exists(folder + kTrace)) run.trace = read_trace(folder + kTrace, run.plan.plans.front());
  if (!run.trace) run.missing.emplace_back("no step was timed call by call yet");
  const bool whole = for_each_line(folder + kMetrics, [&](nlohmann::json line, int64_t number) {
    user_check(!line.is_null(),
               "'{}{}' is damaged: line {} is no object with a step; remove that line", folder,
               kMetrics, number);
    run.metrics.push_back(std::move(line));
  });
  if (!whole)
    run.missing.emplace_back("the last line of metrics.jsonl is half written: it is left out");
  if (run.metrics.empty()) run.missing.emplace_back("no step is on record yet");
  return run;
}

}  // namespace thimble
