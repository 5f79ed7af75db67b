// Everything that a run can be told: what to train, on what, how, and for how long. One list
// (fields/) says what each field is; flags, files, checkpoints, names of measured times, the rows
// of `profile` and the reference all come from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/field.h"
#include "data/dataset.h"
#include "model/model.h"
#include "plan/plan.h"
#include "recipe/schedule.h"
#include "transform/encode_activations.h"
#include "transform/fine_tuning.h"
#include "transform/marks.h"
#include "transform/microbatches.h"
#include "transform/numerics_tier.h"
#include "transform/optimizer.h"
#include "transform/shard.h"
#include "transform/sparsify.h"

namespace thimble {

// Which records, and what becomes of them on their way.
struct DataSpec {
  std::string name;            // of a data set; empty: the model's usual
  std::string folder;          // of its files
  bool augment = false;        // random crops and mirror images
  bool flip = true;            // augment: mirror images, too
  int crop_pad = 4;            // augment
  DataSettings settings = {};  // what sets list of themselves
};

// How long, and how fast. Amounts are in epochs or steps.
struct ScheduleSpec {
  double epochs = 10;
  int64_t steps = 0;  // in place of epochs; 0: as many as those have
  double rate = 0.1;  // learning rate
  RateSchedule::Kind kind = RateSchedule::Kind::cosine;
  std::vector<Span> milestones = {};  // step: where the rate drops
  double factor = 0.2;                // step: what it is multiplied by
  Span warmup = {};
  std::optional<double> warmup_start = {};  // rate of the first step; none: one step above zero

  int64_t total_steps(int64_t steps_per_epoch) const;
  RateSchedule in_steps(int64_t steps_per_epoch) const;
};

// The budget of whoever leaves it to the machine; request/memory_limit.h says what that is.
inline constexpr Bytes kAutomaticMemory{-1};

struct Recipe {
  ModelOptions model;      // its batch is the whole one
  int64_t microbatch = 0;  // rows computed at once; 0: the whole batch
  // Of models whose records have lengths: a variant for each; a microbatch runs in the shortest
  // that holds it. Empty: the model's own, or, of batches by tokens, chosen by the data.
  std::vector<int64_t> lengths = {};
  // Padded tokens of a batch, in place of rows: a batch has records of one of the lengths, and as
  // many as make so many tokens. 0: batches are of `model.batch` rows.
  int64_t tokens = 0;
  int64_t microbatch_tokens = 0;                   // likewise, computed at once; 0: the whole batch
  NumericsTier allow = NumericsTier::approximate;  // what a step may do to the numbers
  OptimizerSpec optimizer = parse_optimizer("nesterov");
  SparsitySpec sparsity = {};
  FineTuning tuning = {};
  int64_t reallocate_every = 0;  // steps between moves of nonzeros; 0: reallocation_schedule's own
  std::string device{usual_device()};
  DeviceOptions on = {};          // how it is used
  RanksSpec ranks = {};           // processes that train together, a microbatch each at a time
  std::string interconnect = {};  // between them (comm/interconnect.h); empty: what was measured
  std::string planner{keep_all_policy()};
  // Budget on the arena; kLeastMemory: as little as it can; kAutomaticMemory: what there is.
  std::optional<Bytes> memory = {};
  bool fit = false;                // the budget chooses techniques, too: see select/choose.h
  Marks marks = {};                // what every planner must keep or compute again
  CodecSpec codec = {};            // how activations are kept
  std::string costs = "modelled";  // kernel times: see execute/costs_path.h
  DataSpec data = {};
  ScheduleSpec schedule = {};
  uint64_t seed = 1;             // of everything random
  Span save_every = {1};         // 0: only at the end
  int64_t keep_checkpoints = 1;  // the last ones
  Span evaluate_every = {1};     // 0: only at the end
  bool evaluate = true;          // false: never
};

// The only list. Fields refer to the recipe's members, and those of a model to the model it names.
// REQUIRES: the recipe outlives them and its model stays the same; UserError when there is no such
// model.
std::vector<Field> fields_of(Recipe& recipe);

template <class Visitor>
void for_each_field(Recipe& recipe, Visitor&& visit) {
  for (const Field& field : fields_of(recipe)) visit(field);
}

// Every field that some model has, with which ones: for help and for the reference.
struct ListedField {
  Field field;                      // of a usual recipe
  std::vector<std::string> models;  // families that have it; empty: all
  std::string help;                 // with models and defaults: "mlp, lstm: layers (2)"
  std::string usual;
};
std::vector<ListedField> listed_fields();

// UserError, saying what to choose instead, where fields do not go together. plan_training() asks,
// so that every door leads here.
void check(const Recipe& recipe);

// Every default filled in: the model's own, and what is left to the device or to other fields. Once
// completed, a recipe stays as it is.
Recipe completed(Recipe requested, const Backend& on);

// Of batches by tokens, those of the longest records.
Microbatches microbatches_of(const Recipe& recipe);
// Of batches by tokens, those of records of that length. Allocates nothing then.
Microbatches microbatches_of(const Recipe& recipe, int64_t length);
// How many a step has at most, of records of any length: where several, every step adds them up.
int most_microbatches(const Recipe& recipe);

// Of batches by tokens, the rows of a whole step of each length, the longest first; else none. The
// same whatever is computed at once; of several ranks, as many for each.
std::vector<StepShape> token_batches(const Recipe& recipe);

// All fields that matter for the time of a step, for the name of a measured one; rates apart.
std::string timed_text(Recipe recipe);

}  // namespace thimble
