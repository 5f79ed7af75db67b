// The largest batch, length, depth or width that fits a budget (`--largest`).
#pragma once

#include "select/technique_selector.h"

namespace thimble {

struct MaxBatch {
  std::string field;  // "batch", ...
  int64_t value = 0;
  Recipe recipe;               // with that value
  Settings explicit_settings;  // with that value typed
  // Whether memory is the limit: false where the model allows no larger value, or the search's own
  // limit was reached.
  bool by_memory = true;
};

// `what` is batch, length, layers or width (hidden, for models with that field). A value fits if
// TechniqueSelector finds a plan at the recipe's tier. A batch must fit without micro-batches.
// UserError where the model has no such field or not even 1 fits.
MaxBatch find_max_batch(const Recipe& requested, const Settings& explicit_settings,
                        const std::string& what, Bytes budget,
                        const std::shared_ptr<Machine>& machine);

}  // namespace thimble
