// Values of every field of a recipe, as they are typed, for tests that go over the list.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "recipe/settings.h"

namespace thimble {

// Small nets and amounts, so that all of them can be planned.
inline const std::map<std::string, std::vector<std::string>>& field_samples() {
  static const std::map<std::string, std::vector<std::string>> samples = {
      {"memory", {"64MiB", "least"}},
      {"planner", {"drop_cheap", "log_recursive:3", "mirror"}},
      {"keep", {"*matmul*"}},
      {"recompute", {"*bias_act*"}},
      {"fold", {"true"}},
      {"allow", {"equivalent", "exact"}},
      {"codec", {"mask", "int8", "auto:fp16"}},
      {"codec-only", {"*"}},
      {"costs", {"auto", "some/file.json"}},
      {"device", {"null"}},
      {"tf32", {"off"}},
      {"streams", {"2"}},
      {"threads", {"1", "2"}},
      {"batch", {"7", "12"}},
      {"microbatch", {"3", "4"}},
      {"tokens", {"48"}},
      {"microbatch-tokens", {"16"}},
      {"lengths", {"4"}},
      {"classes", {"4"}},
      {"image", {"8,8,3", "16,16,1"}},
      {"layers", {"1", "4"}},
      {"hidden", {"8", "12"}},
      {"heads", {"2"}},
      {"width", {"12"}},
      {"vocabulary", {"17"}},
      {"positions", {"rotary"}},
      {"tied", {"off"}},
      {"loss-rows", {"5"}},
      {"dropout", {"0.25"}},
      {"norm", {"group", "carried"}},
      {"norm-momentum", {"0.2"}},
      {"norm-epsilon", {"0.001"}},
      {"length", {"3", "5"}},
      {"steps-at-once", {"2"}},
      {"label-smoothing", {"0.1"}},
      {"optimizer", {"sgd", "adam", "adamw", "adafactor", "lion"}},
      {"momentum", {"0", "0.5"}},
      {"weight-decay", {"0.0005"}},
      {"decay-on", {"matrices"}},
      {"beta1", {"0.8"}},
      {"beta2", {"0.99"}},
      {"epsilon", {"1e-06"}},
      {"state-bits", {"8"}},
      {"clip-norm", {"0.5"}},
      {"clip-two-pass", {"true"}},
      {"precision", {"fp16", "bf16"}},
      {"master", {"true"}},
      {"rounding", {"stochastic", "kahan"}},
      {"loss-scale", {"dynamic", "64"}},
      {"loss-scale-start", {"256"}},
      {"loss-scale-interval", {"10"}},
      {"loss-scale-growth", {"4"}},
      {"loss-scale-backoff", {"0.25"}},
      {"loss-scale-floor", {"0.001"}},
      {"density", {"0.3", "1"}},
      {"sparse", {"*.weight"}},
      {"sparsity", {"static", "magnitude"}},
      {"prune-threshold", {"0.01"}},
      {"prune-target", {"5"}},
      {"reallocate-every", {"2"}},
      {"data", {"generated"}},
      {"data-dir", {"some/folder"}},
      {"sequences", {"640"}},
      {"seed", {"9", "18446744073709551615"}},
      {"augment", {"true"}},
      {"no-flip", {"true"}},
      {"crop-pad", {"2"}},
      {"epochs", {"2.5"}},
      {"steps", {"4"}},
      {"lr", {"0.03"}},
      {"schedule", {"step", "inverse-sqrt"}},
      {"milestones", {"1.5", "3 steps"}},
      {"factor", {"0.5"}},
      {"warmup", {"0.5", "2 steps"}},
      {"warmup-start", {"0.001"}},
      {"save-every", {"0", "2 steps"}},
      {"keep-checkpoints", {"3"}},
      {"eval-every", {"3"}},
      {"no-eval", {"true"}},
  };
  return samples;
}

}  // namespace thimble
