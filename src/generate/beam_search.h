// Beam search for the most likely sentences, several at a time. Knows scores only: whoever has a
// model asks for the sentences begun so far and answers with the scores of what may follow.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace thimble {

struct BeamOptions {
  int64_t beam = 4;
  double length_penalty = 1;  // a sentence of n tokens counts its score / n^penalty
  int32_t begin = 0;          // what every sentence begins with
  int32_t end = 0;            // and ends with
  std::vector<int32_t> never = {};
};

// One of the sentences that are being made: some beginnings of it.
class Beam {
 public:
  // At most `longest` tokens, with the end but without the beginning.
  Beam(const BeamOptions& options, int64_t longest);

  bool done() const { return done_; }
  // Beginnings to be gone on with, all of the same length, at most options.beam.
  size_t count() const { return live_.size(); }
  std::span<const int32_t> beginning(size_t i) const { return live_[i].tokens; }

  // `logits(i)` are those of what follows beginning(i), as many as the vocabulary has; not
  // normalised.
  void advance(const std::function<std::span<const float>(size_t i)>& logits);

  // The best sentence, without its beginning and end. REQUIRES: done().
  std::vector<int32_t> best() const;

 private:
  struct Hypothesis {
    std::vector<int32_t> tokens;  // from the beginning on
    double score = 0;             // log of its probability; of finished ones, by length
  };

  const BeamOptions& options_;
  int64_t longest_;
  std::vector<Hypothesis> live_;
  std::vector<Hypothesis> finished_;
  bool done_ = false;
};

}  // namespace thimble
