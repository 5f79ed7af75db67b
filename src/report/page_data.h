// The contents of the page of a report, as the JSON that is written into it. Long lists of numbers
// are typed arrays in base64: a step of 10,000 calls stays a few megabytes, and opens at once.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/trace.h"
#include "recipe/selection_report.h"
#include "report/explain/value_reasons.h"
#include "report/frontier.h"

namespace thimble {

// A number worth a place at the top: "Arena", "36.4 MiB", "38,198,272 bytes, exact".
struct Headline {
  std::string label;
  std::string value;
  std::string note = {};
};

// One line of a chart of training: ("loss", "test").
struct Curve {
  std::string chart;
  std::string name;
  bool share = false;  // of one: shown in per cent
  std::vector<double> steps;
  std::vector<double> values;
};

struct RecipeLine {
  std::string group;
  std::string name;
  std::string value;
  bool chosen = false;  // other than the usual
};

// Of one variant of the step. Empty members are not known, and not shown.
struct ReportData {
  std::string title;
  std::string subtitle;
  std::vector<Headline> headlines;
  const Graph& graph;
  const Plan& plan;
  std::vector<Why> why;                 // by value
  std::vector<double> planned_seconds;  // by call, over all microbatches
  Trace measured = {};                  // likewise
  double measured_step_seconds = 0;     // of usual steps, in which calls are not timed
  Bytes budget = {};                    // 0: none
  std::optional<SelectionRecord> choices = {};
  std::vector<FrontierPoint> frontier = {};
  std::string frontier_costs = {};
  std::vector<Curve> curves = {};
  std::vector<RecipeLine> recipe = {};
  std::vector<std::string> notes = {};  // what is missing, and why
};

nlohmann::json report_json(const ReportData& data);

// An array as {"type": "u32", "data": "..."}: little-endian, in base64.
template <class T>
nlohmann::json packed_array(const std::vector<T>& numbers);

nlohmann::json curves_json(const std::vector<Curve>& curves);

}  // namespace thimble
