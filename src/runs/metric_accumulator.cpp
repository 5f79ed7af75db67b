#include "runs/metric_accumulator.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "comm/small_collectives.h"

namespace thimble {
namespace {

bool has_number(const nlohmann::json& json, const std::string& key) {
  return json.is_object() && json.contains(key) && json[key].is_number();
}

bool has_count(const nlohmann::json& json) {
  return has_number(json, "count") && json["count"].get<double>() >= 0;
}

double number(Program& program, ValueId value) {
  return static_cast<double>(program.view<float>(value)[0]);
}

double mean_of(double sum, double count) { return count == 0 ? 0 : sum / count; }

}  // namespace

double Figures::operator[](std::string_view metric) const {
  const auto found = std::ranges::find(metrics, metric, &Figure::name);
  return found == metrics.end() ? 0 : found->value;
}

MetricAccumulator::MetricAccumulator(const Model& model)
    : metrics_(model.metrics), sums_(model.metrics.size()) {}

void MetricAccumulator::add(Program& program, const Model& model, double counted, double weight) {
  loss_ += number(program, model.loss) * weight;
  weight_ += weight;
  for (size_t m = 0; m < sums_.size(); ++m) {
    const Metric& metric = model.metrics[m];
    if (metric.sum.valid()) sums_[m].sum += number(program, metric.sum);
    sums_[m].count += metric.count.valid() ? number(program, metric.count) : counted;
  }
}

void MetricAccumulator::add_up(Communicator& ranks) {
  std::vector<double> numbers = {loss_, weight_};
  for (const Sum& sum : sums_) numbers.insert(numbers.end(), {sum.sum, sum.count});
  thimble::add_up(ranks, numbers);
  loss_ = numbers[0];
  weight_ = numbers[1];
  for (size_t m = 0; m < sums_.size(); ++m) sums_[m] = {numbers[2 + 2 * m], numbers[3 + 2 * m]};
}

Figures MetricAccumulator::figures() const {
  Figures figures;
  figures.loss = mean_of(loss_, weight_);
  for (size_t m = 0; m < sums_.size(); ++m) {
    const Metric& metric = metrics_[m];
    const double mean = metric.sum.valid() ? mean_of(sums_[m].sum, sums_[m].count) : figures.loss;
    figures.metrics.push_back({metric.name, metric.brief, metric.share,
                               metric.of_mean == nullptr ? mean : metric.of_mean(mean)});
  }
  return figures;
}

void MetricAccumulator::clear() {
  loss_ = weight_ = 0;
  std::ranges::fill(sums_, Sum{});
}

nlohmann::json MetricAccumulator::to_json() const {
  nlohmann::json json = {{"loss_sum", loss_}, {"count", weight_}};
  json["metrics"] = nlohmann::json::object();
  for (size_t m = 0; m < sums_.size(); ++m) {
    json["metrics"][metrics_[m].name] = {{"sum", sums_[m].sum}, {"count", sums_[m].count}};
  }
  return json;
}

bool MetricAccumulator::from_json(const nlohmann::json& json) {
  if (!has_number(json, "loss_sum") || !has_count(json)) return false;
  loss_ = json["loss_sum"].get<double>();
  weight_ = json["count"].get<double>();
  if (!json.contains("metrics")) return true;
  for (size_t m = 0; m < sums_.size(); ++m) {
    const nlohmann::json sum = json["metrics"].is_object()
                                   ? json["metrics"].value(metrics_[m].name, nlohmann::json())
                                   : nlohmann::json();
    if (!has_number(sum, "sum") || !has_count(sum)) return false;
    sums_[m] = {sum["sum"].get<double>(), sum["count"].get<double>()};
  }
  return true;
}

}  // namespace thimble
