// The other way round: the largest batch, length, depth or width that a budget has room for.
#pragma once

#include "select/technique_selector.h"

namespace thimble {

struct MaxBatch {
  std::string field;  // that was found: "batch"
  int64_t value = 0;
  Recipe recipe;               // with it
  Settings explicit_settings;  // likewise
  // Whether it is memory that says so: false where the model has no larger one, or nobody would look for it.
  bool by_memory = true;
};

// `what` is batch, length, layers or width (of models that call it hidden: that). TechniqueSelector says, at
// the recipe's tier, whether a value fits. A batch must fit without micro-batches. UserError where the model
// has no such field or not even 1 fits.
MaxBatch find_max_batch(const Recipe& requested, const Settings& explicit_settings,
                        const std::string& what, Bytes budget,
                        const std::shared_ptr<Machine>& machine);

}  // namespace thimble
