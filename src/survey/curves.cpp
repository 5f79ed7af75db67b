#include "survey/curves.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace thimble {
namespace {

// Empty where no line has the key.
void add(std::vector<Curve>& curves, const std::vector<nlohmann::json>& lines,
         const std::string& key, Curve curve) {
  for (const nlohmann::json& line : lines) {
    const auto found = line.find(key);
    if (found == line.end() || !found->is_number()) continue;
    curve.steps.push_back(line["step"].get<double>());
    curve.values.push_back(found->get<double>());
  }
  if (!curve.steps.empty()) curves.push_back(std::move(curve));
}

}  // namespace

std::vector<Curve> curves_of(const std::vector<nlohmann::json>& lines,
                             const std::vector<Metric>& metrics) {
  std::vector<Curve> curves;
  add(curves, lines, "loss", {.chart = "loss", .name = "training"});
  add(curves, lines, "test_loss", {.chart = "loss", .name = "test"});
  for (const Metric& metric : metrics) {
    add(curves, lines, "train_" + metric.name,
        {.chart = metric.name, .name = "training", .share = metric.share});
    add(curves, lines, "test_" + metric.name,
        {.chart = metric.name, .name = "test", .share = metric.share});
  }
  add(curves, lines, "lr", {.chart = "learning rate", .name = "learning rate"});
  add(curves, lines, "ms", {.chart = "step time (ms)", .name = "a step"});
  return curves;
}

double median_step_seconds(const std::vector<nlohmann::json>& lines) {
  std::vector<Curve> times;
  add(times, lines, "ms", {});
  if (times.empty()) return 0;
  std::vector<double>& all = times.front().values;
  const auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle / 1e3;
}

}  // namespace thimble
