// The handles of the C functions.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/guarded.h"
#include "data/dataset.h"
#include "generate/sampler.h"
#include "pipeline/pipeline.h"
#include "recipe/settings.h"
#include "runs/run_folder.h"
#include "train/feed/batch_source.h"
#include "train/trainer.h"
#include "weights/outside_tensors.h"

struct thimble_recipe {
  std::string model;  // empty: `overrides` names it
  thimble::Settings overrides;
  std::string goes_on_from;  // folder of a run; empty: a new one is planned
};

namespace thimble::api {

// Shared by a plan and its runs.
struct Planned {
  PlannedTraining training;
  std::unique_ptr<Dataset> dataset;  // null: none was named or wanted
};

// A batch of the recipe's, or a tensor of the graph, without its data.
thimble_tensor described(const char* name, const TensorType& type);

}  // namespace thimble::api

struct thimble_plan {
  std::shared_ptr<thimble::api::Planned> planned;
  double step_ms = 0;
  std::string tier, json, recipe, notes;
  std::vector<thimble_tensor> fields;
};

struct thimble_generator {
  explicit thimble_generator(thimble::PlannedGeneration planned) : sampler(std::move(planned)) {}

  thimble::Sampler sampler;
  bool begun = false;
  std::string note;  // of the plan, or of the weights
};

struct thimble_run {
  std::shared_ptr<thimble::api::Planned> planned;
  std::optional<thimble::RunFolder> folder;  // none: nothing is saved
  thimble_run_options callbacks = {};        // its texts are gone
  std::unique_ptr<thimble::BatchSource> source;
  std::unique_ptr<thimble::Trainer> trainer;
  std::atomic<bool> stop = false;
  double rate = -1;                             // below 0: the schedule's
  bool endless = false;                         // nobody said how many steps there are
  std::vector<thimble::OutsideTensor> weights;  // of a net from outside, by its own names
  // What pointers of the last answer point to.
  std::vector<thimble_metric> metrics, test_metrics;
  std::string result, checkpoint;
};
