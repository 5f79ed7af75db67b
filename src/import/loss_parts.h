// The parts of a loss from outside, so that a step in micro-batches (gradient accumulation)
// trains what the whole batch would. A loss declares its weight: it is a sum over rows, a mean of
// them, or a sum divided by a weight that needs no gradient (labels that count, a mask). Sums and
// weights add up over micro-batches, and are divided once, at the end of the step. Whatever else
// mixes rows is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/lowering.h"

namespace thimble {

// coefficient * value * factors, one summand of the loss. Values go by name, so that they are found
// in a graph for any number of rows.
struct LossTerm {
  struct Factor {
    std::string value;  // the same whatever the rows are
    bool divides = false;
  };
  std::string value;   // empty: a number
  bool mean = false;   // of rows; else a sum over them
  double entries = 1;  // of a sum: about how many numbers of each row
  double coefficient = 1;
  std::vector<Factor> factors;
  int counts = 0;  // factors that are a multiple of the number of rows, those that divide taken off
};

// Sums are divided by it (or multiplied).
struct LossWeight {
  std::string value;
  bool divides = true;
  struct Sum {
    std::string value;
    bool mean = false;
  };
  std::vector<Sum> sums;  // what it is a function of

  bool operator==(const LossWeight& other) const {
    return value == other.value && divides == other.divides;
  }
};

struct LossParts {
  std::string refused;  // why a batch cannot be computed in parts; empty: it can
  std::vector<LossTerm> terms;
  std::optional<LossWeight> weight;  // of all terms
  bool labels_all_count = false;     // else the terms are not the loss: means over different labels
  // The terms without a weight, for records whose labels all count; empty where the weight is
  // another.
  std::vector<LossTerm> terms_when_all_count;
};

// The options for two numbers of rows, so that what follows them can be told.
std::pair<ModelOptions, ModelOptions> two_sizes_of(const ModelOptions& options);

// Of a net that was built for both.
LossParts find_loss_parts(const Lowering& net, const Lowering& other, std::string_view loss);

}  // namespace thimble
