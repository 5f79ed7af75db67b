// What to train and on what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "model/model.h"
#include "plan/plan.h"
#include "transform/encode_activations.h"
#include "transform/marks.h"
#include "transform/microbatches.h"
#include "transform/optimizer.h"
#include "transform/sparsify.h"
#include "transform/tier.h"

namespace thimble {

struct Recipe {
  ModelOptions model;      // its batch is the whole one
  int64_t microbatch = 0;  // rows computed at once; 0: the whole batch
  // Of models whose records have lengths: a variant for each; a microbatch runs in the shortest that
  // holds it. Empty: the model's own.
  std::vector<int64_t> lengths = {};
  Tier allow = Tier::approximate;  // what a step may do to the numbers
  OptimizerSpec optimizer;
  SparsitySpec sparsity;
  std::string device = "cpu";
  DeviceOptions on;  // how it is used
  std::string planner = "keep_all";
  std::optional<Bytes> memory;  // budget on the arena; kLeastMemory: as little as it can
  Marks marks;                  // what every planner must keep or compute again
  CodecSpec codec;              // how activations are kept
  std::string costs;            // file of measured kernel times; empty: modelled ones
};

// The recipe's model with every default filled in.
ModelOptions complete_options(const Recipe& recipe);
Microbatches microbatches_of(const Recipe& recipe);

}  // namespace thimble
