// Learning-rate schedules: a plain function of the step number s, counted from 0.
//
//   s < W   warm-up      base (s + 1) / (W + 1): a straight line that would meet `base` at step W
//   s = W   every schedule begins, at `base`
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

struct RateSchedule {
  enum class Kind : uint8_t { constant, step, cosine, inverse_sqrt } kind = Kind::constant;
  double base = 0.1;
  int64_t warmup_steps = 0;                 // linear from its start to `base`
  std::optional<double> warmup_start = {};  // of the first step; none: base / (warmup_steps + 1)
  int64_t total_steps = 1;                  // cosine: ends at `floor` here
  double floor = 0;                         // cosine
  std::vector<int64_t> milestones = {};     // step: where the rate is multiplied by `factor`
  double factor = 0.2;                      // step
};

// "constant", "step", "cosine", "inverse-sqrt".
std::string_view name_of(RateSchedule::Kind kind);
inline constexpr size_t kScheduleKinds = 4;

// The rate of a step. inverse_sqrt: base sqrt((W + 1) / (s + 1)).
double rate_at(const RateSchedule& schedule, int64_t step);

}  // namespace thimble
