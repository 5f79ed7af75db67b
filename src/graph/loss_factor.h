// The weight of a loss that is known only once all parts of a step have been counted.
#pragma once

#include <vector>

#include "base/number/ids.h"

namespace thimble {

// A function of sums over rows, known once those are added up over all parts of a step.
struct LossFactor {
  std::vector<ValueId> arguments;  // of the part at hand
  std::vector<ValueId> sums;       // the same, f32, as they are to be added up
  ValueId weight;                  // computed of the arguments
  bool divides = true;             // 1 / weight, else weight
  double guess = 1;  // the loss has this factor already, so that gradients keep their size
};

}  // namespace thimble
