// Labels that do not count (ignore_index), where a loss cannot do with them. The loss of a step
// without any other is a mean over nothing, and some losses take all labels to count
// (Feed::must_count). Both are refused once the rows are there, before any weight is updated.
#pragma once

#include <cstdint>

#include "execute/program.h"
#include "model/model.h"
#include "train/feed/batch_source.h"

namespace thimble {

class CountedLabels {
 public:
  // Called for every part of a step, once it is filled. A rank sees its own rows only, so it does
  // not see that no label of a step counts.
  void check(Program& program, const Model& model, const TrainingRows& rows);

 private:
  uint64_t counting_ = 0;  // fields, by bit, of which some label counts
  int64_t seen_ = 0;       // rows of the step
};

}  // namespace thimble
