#include "recipe/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace thimble {

using Kind = RateSchedule::Kind;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::constant:
      return "constant";
    case Kind::step:
      return "step";
    case Kind::cosine:
      return "cosine";
    case Kind::inverse_sqrt:
      return "inverse-sqrt";
  }
  return "?";
}

double rate_at(const RateSchedule& schedule, int64_t step) {
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  if (step < schedule.warmup_steps) {
    if (!schedule.warmup_start) {
      return schedule.base * real(step + 1) / real(schedule.warmup_steps + 1);
    }
    const double done = real(step) / real(schedule.warmup_steps);
    return *schedule.warmup_start + (schedule.base - *schedule.warmup_start) * done;
  }
  switch (schedule.kind) {
    case Kind::constant:
      return schedule.base;
    case Kind::step: {
      const auto passed = std::count_if(schedule.milestones.begin(), schedule.milestones.end(),
                                        [&](int64_t at) { return step >= at; });
      return schedule.base * std::pow(schedule.factor, real(passed));
    }
    case Kind::cosine: {
      const int64_t span = std::max<int64_t>(1, schedule.total_steps - schedule.warmup_steps);
      const double done = std::min(1.0, real(step - schedule.warmup_steps) / real(span));
      const double wave = 0.5 * (1 + std::cos(std::numbers::pi * done));
      return schedule.floor + (schedule.base - schedule.floor) * wave;
    }
    case Kind::inverse_sqrt: {
      // 1 at the first step behind the ramp.
      return schedule.base * std::sqrt(real(schedule.warmup_steps + 1) / real(step + 1));
    }
  }
  return schedule.base;
}

}  // namespace thimble
