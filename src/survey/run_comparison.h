// Runs beside each other: how each went, and the fields of their recipes that differ.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/page_data.h"
#include "runs/run_record.h"
#include "transform/numerics_tier.h"

namespace thimble {

struct ComparedRun {
  std::string name;  // of its folder
  std::string model;
  int64_t steps = 0;             // on record
  std::optional<double> loss;    // of the last test, else of the last step; none: no step yet
  bool tested = false;           // whether it is a test's
  std::optional<double> metric;  // of the last test
  Bytes arena;
  double step_ms = 0;  // median; 0: not measured
  double seconds = 0;  // of training so far
  NumericsTier tier = NumericsTier::exact;
  std::vector<std::string> fields;  // by RunComparison::fields
  std::vector<Curve> curves;
};

struct RunComparison {
  std::string metric;               // of all, by name; empty: they have none in common
  bool share = false;               // it is shown in per cent
  std::vector<std::string> fields;  // those that differ
  std::vector<ComparedRun> runs;
};

// REQUIRES: there is one at least.
RunComparison compare_runs(const std::vector<RunRecord>& runs);

std::string comparison_text(const RunComparison& comparison);  // a table
nlohmann::json comparison_json(const RunComparison& comparison);
std::string comparison_page(const RunComparison& comparison);  // HTML

}  // namespace thimble
