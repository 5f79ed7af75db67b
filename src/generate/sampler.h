// Continues a text, token by token. With a KV cache, only what the cache does not hold yet is
// computed; without one, the whole text is, by the shortest step that holds it. A text that is longer
// than the context is forgotten from its beginning on, half a context at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "generate/trained_model.h"

namespace thimble {

struct SampleOptions {
  double temperature = 1;  // 0: always the likeliest
  int64_t top_k = 0;       // only so many of the likeliest; 0: all
  double top_p = 1;        // only the likeliest whose probabilities add up to this (nucleus)
  uint64_t seed = 1;
  std::vector<int32_t> stop = {};  // tokens that end the text
};

// One token by its logits, `number` being which of the text it is: the same for the same seed.
int32_t choose_token(std::span<const float> logits, const SampleOptions& options, int64_t number);

class Sampler {
 public:
  explicit Sampler(PlannedGeneration planned);

  // Its weights are first values until others are loaded, which forgets what the cache holds.
  std::string load(const TrainedWeights& from);
  const PlannedGeneration& planned() const { return planned_; }
  ResidentModel& model() { return model_; }
  int64_t vocabulary() const;

  // Begins to continue a text, of which the cache may hold a beginning. UserError for an empty one,
  // or a token beyond the vocabulary.
  void begin(std::vector<int32_t> text, const SampleOptions& options);
  // The next token of the text begun; nothing where a token of `stop` ends it.
  std::optional<int32_t> make_token();
  // At most `count` tokens behind the prompt; each is told as it is made.
  std::vector<int32_t> go_on(std::vector<int32_t> text, int64_t count, const SampleOptions& options,
                             const std::function<void(int32_t token)>& made = {});
  // The logits of the token behind a text, of which its end counts. UserError as of begin().
  std::span<const float> next(std::vector<int32_t> text);

  // Tokens that the cache holds.
  int64_t held() const { return std::ssize(held_); }
  // Tokens computed so far, as parts of chunks.
  int64_t computed() const { return computed_; }
  void forget() { held_.clear(); }

 private:
  void check(std::span<const int32_t> text) const;
  // The logits of what follows the text. REQUIRES: it is no longer than the context.
  std::span<const float> logits_behind(std::span<const int32_t> text);
  void compute_all(std::span<const int32_t> text);
  void compute_rest(std::span<const int32_t> text);
  BoundStep& step_for(int64_t tokens);
  void read_logits(BoundStep& step);

  PlannedGeneration planned_;
  ResidentModel model_;
  std::vector<BoundStep> bound_;  // shorter ones first
  std::vector<float> logits_;
  std::vector<int32_t> held_;  // whose keys and values the cache holds
  std::vector<int32_t> text_;  // that is being continued
  SampleOptions options_;
  int64_t number_ = 0;  // of the next token
  int64_t computed_ = 0;
};

}  // namespace thimble
