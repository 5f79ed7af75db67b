// Continues a text, token by token, in the arena that the model was trained in. Of every length
// that doubles up to the model's there is a step, and the shortest that holds the text so far runs.
// A text that is longer is forgotten from its beginning on, half a model's length at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "generate/trained_model.h"

namespace thimble {

struct SampleOptions {
  double temperature = 1;  // 0: always the likeliest
  int64_t top_k = 0;       // only so many of the likeliest; 0: all
  uint64_t seed = 1;
};

// One token by its logits, `number` being which of the text it is: the same for the same seed.
int32_t choose_token(std::span<const float> logits, const SampleOptions& options, int64_t number);

class Sampler {
 public:
  // UserError where the model does not go on with a text. REQUIRES: the model outlives it.
  explicit Sampler(TrainedModel& trained);

  // `count` tokens behind the prompt; each is told as it is made. UserError for an empty prompt, or
  // a token beyond the vocabulary.
  std::vector<int32_t> go_on(std::vector<int32_t> text, int64_t count, const SampleOptions& options,
                             const std::function<void(int32_t token)>& made = {});
  // The logits of the token behind a text, of which its end counts. UserError as of go_on().
  std::span<const float> next(std::vector<int32_t> text);

 private:
  void check(std::span<const int32_t> text) const;
  // The logits of what follows the text. REQUIRES: it is no longer than the model.
  std::span<const float> logits_behind(std::span<const int32_t> text);

  TrainedModel& trained_;
  std::vector<std::unique_ptr<PlannedStep>> variants_;  // shorter ones first
  std::vector<BoundStep> bound_;
  std::vector<float> logits_;
};

}  // namespace thimble
