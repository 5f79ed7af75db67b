// Everything a report shows of a plan, or of a run of one, put together: the step built again from
// its recipe, what its calls cost, the frontier it lies on, why each tensor is where it is.
#pragma once

#include <string>
#include <vector>

#include "recipe/plan_file.h"
#include "runs/run_record.h"

namespace thimble {

struct DrawnPicture {
  std::string name;  // "memory"
  std::string svg;
};

struct ReportFiles {
  std::string page;                    // HTML
  std::vector<DrawnPicture> pictures;  // for papers
  std::vector<std::string> notes;      // what is missing, and why
};

struct ReportRequest {
  const PlanFile& plan;
  const RunRecord* run = nullptr;  // null: nothing was run
  bool frontier = true;            // plan with every policy and many budgets, too
};
// REQUIRES: a sound plan (check_on_any_device).
ReportFiles make_report(const ReportRequest& request);

}  // namespace thimble
