// Why a plan is as it is, as plain values: the tensors that fill it, the price of a megabyte more
// or less, the gain of each technique, and why each large tensor is kept, compressed or recomputed.
// Printed, or written as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "recipe/selection_report.h"

namespace thimble {

struct PlannedTraining;

struct LiveTensor {
  std::string name;
  std::string role;
  std::string type;  // "f32[100,32,32,16]"
  Bytes bytes;
  int made = 0;  // call that made it; -1: there from the start
  int last_read = 0;
  double again_ms = -1;  // of computing it again from what is there; below 0: it cannot be
};

struct TensorResidency {
  std::string name;
  std::string fate;       // "kept", "computed again", "kept as int4", "computed again as int4"
  std::string residency;  // "kept", "recomputed", "compressed"
  Bytes bytes;            // whole
  Bytes kept;             // of them in memory between forward and backward pass; codes as they are
  double again_ms = 0;    // of its op alone, all microbatches
  std::string why;
};

// A point of the recipe's frontier, budgets falling.
struct PricePoint {
  Bytes arena;
  double ms = 0;
  // From the point before to this one: what a MiB less costs.
  double ms_per_mib = 0;
  bool chosen = false;  // the plan that is explained
};

struct Explanation {
  Bytes arena;
  Bytes peak;                            // live at the fullest call
  int peak_call = 0;                     // from 0
  std::string peak_node;                 // what runs then
  std::vector<LiveTensor> live;          // at that moment, largest first
  std::vector<TensorResidency> tensors;  // large activations that the backward pass needs
  std::vector<TechniqueGain> gains;      // none: nothing but what keeps everything
  Bytes plain_arena;                     // of the step before all shares
  double plain_ms = 0;
  std::vector<PricePoint> frontier;  // largest arena first
  double next_mib_ms = 0;            // of the MiB after the plan's arena; 0: there is none below
};

// Plans the step's frontier, which takes about as long as planning it.
Explanation explain(const PlannedTraining& training);

std::string explanation_text(const Explanation& why);
nlohmann::json to_json(const Explanation& why);

}  // namespace thimble
