// Files that a run leaves beside its checkpoints, for people and for other programs:
//
//   OUT/recipe.toml     what was asked for: `thimble train OUT/recipe.toml` does it again
//   OUT/plan.json       the plan, as `thimble plan --save` writes it
//   OUT/trace.json      planned and measured time of every call, of one step
//   OUT/metrics.jsonl   a line a step (of long runs, of one in so many) and a line a test
//
// The first three are whole or not there. Lines of metrics are on disk before a checkpoint is, so
// that a resumed run finds all lines before it. Later lines are dropped then, since the run repeats
// them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/io/append_file.h"
#include "execute/trace.h"
#include "pipeline/pipeline.h"
#include "recipe/plan_file.h"

namespace thimble {

// Lines of metrics, each an object with "step". Of a run that goes on, those up to its step are
// kept, but for damaged ones. Lines wait in memory for flush(), or for the end.
class MetricsFile {
 public:
  MetricsFile(const std::string& folder, int64_t resumed_at);

  void add(const nlohmann::json& line);
  void flush() { file_->flush(); }

  // "seconds" of the last line that was kept; 0: there is none.
  double seconds_before() const { return seconds_before_; }

 private:
  std::optional<AppendFile> file_;
  double seconds_before_ = 0;
};

// Steps between two lines, so that there are 10,000 at most (and those of tests).
int64_t steps_per_line(int64_t steps);

// recipe.toml and plan.json; a trace of another plan is removed.
void record_plan(const std::string& folder, const PlannedTraining& planned);
// A shape of a step that was run with its calls timed.
struct TimedPart {
  const PlannedStep& step;
  const Trace& trace;  // empty: no microbatch had this shape
  int runs = 0;        // microbatches of this shape
  bool ends_step = false;
};
// trace.json. REQUIRES: the shape that the step is planned for comes first.
void record_trace(const std::string& folder, const std::vector<TimedPart>& parts, int64_t number);

// Times of a step's calls, over all microbatches.
struct TraceRecord {
  int64_t step = 0;
  std::string costs;                    // what was predicted with
  std::vector<double> planned_seconds;  // by call of the plan of full microbatches
  std::vector<double> measured_seconds;
};

// A run as far as it goes. UserError where there is none, or where something in it is damaged.
struct RunRecord {
  std::string folder;
  PlanFile plan;
  std::optional<TraceRecord> trace;
  std::vector<nlohmann::json> metrics;  // objects with "step", in order
  std::vector<std::string> missing;     // what a whole run would have
};
RunRecord read_run(const std::string& folder);

}  // namespace thimble
