#include "runs/run_log.h"

#include <cmath>

#include "base/error.h"

namespace thimble {
namespace {

// To a microsecond: what is beyond is noise, and makes long lines.
double rounded(double milliseconds) { return std::round(1e3 * milliseconds) / 1e3; }

nlohmann::json line_of(const LoggedStep& step, double seconds_before) {
  return {{"step", step.step},
          {"epoch", step.epoch},
          {"seconds", rounded(seconds_before + step.run_seconds)}};
}

void add_figures(nlohmann::json& line, const std::string& prefix, const Figures& figures) {
  line[prefix + "loss"] = figures.loss;
  for (const Figure& metric : figures.metrics) line[prefix + metric.name] = metric.value;
}

}  // namespace

RunLog::RunLog(const std::string& out, const std::string& tensorboard, int64_t resumed_at,
               int64_t steps)
    : every_(steps_per_line(steps)), last_(steps), flushed_(std::chrono::steady_clock::now()) {
  if (!out.empty()) metrics_ = std::make_unique<MetricsFile>(out, resumed_at);
  if (!tensorboard.empty()) events_ = std::make_unique<EventFile>(tensorboard, resumed_at);
}

void RunLog::add_step(const LoggedStep& step) {
  if (step.step % every_ != 0 && step.step != last_) return;
  if (metrics_) {
    nlohmann::json line = line_of(step, metrics_->seconds_before());
    line["loss"] = step.loss;
    line["lr"] = step.rate;
    line["ms"] = rounded(1e3 * step.step_seconds);
    if (step.loss_scale > 0) line["loss_scale"] = step.loss_scale;
    metrics_->add(line);
  }
  if (events_) {
    events_->add(step.step, {{"train/loss", step.loss},
                             {"train/learning_rate", step.rate},
                             {"train/step_ms", 1e3 * step.step_seconds}});
  }
  flush_now_and_then();
}

void RunLog::add_test(const LoggedStep& step, const Figures& train, const Figures& test) {
  if (metrics_) {
    nlohmann::json line = line_of(step, metrics_->seconds_before());
    add_figures(line, "train_", train);
    add_figures(line, "test_", test);
    metrics_->add(line);
  }
  if (events_) {
    std::vector<std::pair<std::string, double>> scalars = {{"test/loss", test.loss}};
    for (const Figure& metric : test.metrics)
      scalars.emplace_back("test/" + metric.name, metric.value);
    for (const Figure& metric : train.metrics)
      scalars.emplace_back("train/" + metric.name, metric.value);
    events_->add(step.step, scalars);
  }
}

void RunLog::flush() {
  if (metrics_) metrics_->flush();
  if (events_) events_->flush();
  flushed_ = std::chrono::steady_clock::now();
}

void RunLog::flush_now_and_then() {
  if (std::chrono::steady_clock::now() - flushed_ < std::chrono::seconds(1)) return;
  flushed_ = std::chrono::steady_clock::now();
  try {
    flush();
  } catch (const UserError&) {  // a disk that is full for a moment; before a checkpoint it matters
  }
}

}  // namespace thimble
