#include "execute/model_scale.h"

#include <cctype>
#include <cmath>

#include "execute/costs.h"

namespace thimble {
namespace {

// The mean of ratios, by nearness in size: one of twice or half the time counts a quarter.
double ratio_for(double modelled, const std::vector<const KernelTime*>& relatives) {
  double weights = 0, sum = 0;
  for (const KernelTime* time : relatives) {
    const double apart = std::log2(time->modelled / modelled);
    const double weight = 1 / (1 + apart * apart) / (1 + apart * apart);
    weights += weight;
    sum += weight * std::log(time->seconds / time->modelled);
  }
  return std::exp(sum / weights);
}

}  // namespace

ModelScale::ModelScale(const CostTable& measured) {
  // Of several implementations of the same, the fastest is what runs.
  std::map<std::string_view, const KernelTime*> fastest;
  for (const auto& [key, time] : measured) {
    const std::string_view op = op_of_key(key);
    if (op == kWholeStep || op == kLinkLatency || op == kLinkByte || time.modelled <= 0) continue;
    const KernelTime*& best = fastest[task_of_key(key)];
    if (best == nullptr || time.seconds < best->seconds) best = &time;
  }
  double seconds = 0, modelled = 0;
  for (const auto& [task, time] : fastest) {
    seconds += time->seconds;
    modelled += time->modelled;
    by_kind_[kind_of(task)].push_back(time);
    by_op_[std::string(op_of_key(task))].push_back(time);
  }
  if (modelled > 0) all_ = seconds / modelled;
}

std::string ModelScale::kind_of(std::string_view key) {
  std::string kind(op_of_key(key));
  for (size_t at = key.find('['); at != std::string_view::npos; at = key.find('[', at + 1)) {
    size_t begin = at;
    while (begin > 0 && std::isalnum(static_cast<unsigned char>(key[begin - 1])) != 0) --begin;
    kind += ' ';
    kind += key.substr(begin, at - begin);
  }
  return kind;
}

double ModelScale::of(std::string_view key, double modelled) const {
  if (modelled <= 0) return all_;
  const auto kind = by_kind_.find(kind_of(key));
  if (kind != by_kind_.end()) return ratio_for(modelled, kind->second);
  const auto op = by_op_.find(op_of_key(key));
  return op != by_op_.end() ? ratio_for(modelled, op->second) : all_;
}

}  // namespace thimble
