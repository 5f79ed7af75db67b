// The log of a run in progress: lines of metrics in its folder (runs/run_record.h), and event files
// where TensorBoard looks for them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runs/event_file.h"
#include "runs/metric_accumulator.h"
#include "runs/run_record.h"

namespace thimble {

struct LoggedStep {
  int64_t step = 0;  // done
  double epoch = 0;
  double loss = 0;
  double rate = 0;  // learning rate
  double step_seconds = 0;
  double run_seconds = 0;  // of this process
  double loss_scale = 0;   // 0: not dynamic
};

class RunLog {
 public:
  // Folders may be empty: nothing is written there. `steps` are those of the whole run.
  RunLog(const std::string& out, const std::string& tensorboard, int64_t resumed_at, int64_t steps);

  void add_step(const LoggedStep& step);
  // Of a test right behind that step; `train` is over the epoch so far.
  void add_test(const LoggedStep& step, const Figures& train, const Figures& test);
  // Everything said so far is with the system.
  void flush();

 private:
  void flush_now_and_then();

  int64_t every_;  // steps of a line
  int64_t last_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<EventFile> events_;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace thimble
