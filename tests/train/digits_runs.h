// Runs of a small net on the digits, for tests of what optimizers keep.
#pragma once

#include <numeric>

#include "support/runs.h"

namespace thimble {

inline RunSetup digits_mlp(const std::string& optimizer, int state_bits = 32) {
  return {.model = {.name = "mlp:hidden=64", .batch = 48},
          .optimizer = optimizer,
          .rate = optimizer[0] == 'a' ? 2e-3 : 0.05,
          .state_bits = state_bits};
}

inline double mean_of_last(const TrainResult& result, size_t count) {
  return std::accumulate(result.losses.end() - static_cast<ptrdiff_t>(count), result.losses.end(),
                         0.0) /
         static_cast<double>(count);
}

inline Bytes state_bytes(const PlannedTraining& planned) {
  Bytes sum;
  for (const Value& value : planned.graph().values) {
    const bool state = value.role == Role::optimizer_state && !value.producer.valid();
    if (state) sum += value.type.bytes();
  }
  return sum;
}

inline constexpr int64_t kSteps = 300;  // ten epochs of the digits

}  // namespace thimble
