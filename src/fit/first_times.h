// Times one can believe without asking: where hardly a kernel of a step was ever measured here, the first
// seconds go into that, and the times are kept for all that follows, as `thimble calibrate` keeps them.
#pragma once

#include <optional>
#include <string>

#include "recipe/recipe.h"

namespace thimble {

struct FirstTimes {
  int kernels = 0;
  double seconds = 0;
  std::string file;
};

// None: the recipe's costs are not automatic, the device runs nothing, there is no folder to keep times
// in, THIMBLE_CALIBRATE=off forbids it, or a tenth of the step's time was measured before. Takes no more
// memory than the recipe's budget: the arena is not there yet.
std::optional<FirstTimes> measure_first_times(const Recipe& recipe);

}  // namespace thimble
