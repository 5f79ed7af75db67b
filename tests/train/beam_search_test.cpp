// Beam search against every sentence that there is.
#include "generate/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/number/philox.h"

namespace thimble {
namespace {

constexpr int32_t kBegin = 1, kEnd = 2;
constexpr size_t kTokens = 5;  // 0 is never chosen

// Scores of what follows a beginning: any, but always the same.
std::vector<float> logits_after(std::span<const int32_t> begun, uint64_t salt) {
  uint64_t hash = salt;
  for (const int32_t token : begun) hash = hash * 1'000'003 + static_cast<uint64_t>(token);
  const PhiloxCounter a = philox({static_cast<uint32_t>(hash), 0, 0, 0}, philox_key(salt));
  const PhiloxCounter b = philox({static_cast<uint32_t>(hash), 1, 0, 0}, philox_key(salt));
  std::vector<float> logits;
  for (const uint32_t word : {a[0], a[1], a[2], a[3], b[0]}) {
    logits.push_back(static_cast<float>(word >> 8) * 0x1p-22f);
  }
  return logits;
}

std::vector<int32_t> found(const BeamOptions& options, int64_t longest, uint64_t salt) {
  Beam beam(options, longest);
  std::vector<std::vector<float>> logits;
  while (!beam.done()) {
    logits.clear();
    for (size_t i = 0; i < beam.count(); ++i) {
      logits.push_back(logits_after(beam.beginning(i), salt));
    }
    beam.advance([&](size_t i) { return std::span<const float>(logits[i]); });
  }
  return beam.best();
}

struct Best {
  double score = -INFINITY;
  std::vector<int32_t> tokens;
};

// All sentences from this beginning on, each judged by itself.
void try_all(std::vector<int32_t>& begun, double score, const BeamOptions& options, int64_t longest,
             uint64_t salt, Best& best) {
  const std::vector<float> logits = logits_after(begun, salt);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const auto made = static_cast<int64_t>(begun.size());
  for (int32_t token = 1; token < static_cast<int32_t>(kTokens); ++token) {
    if (token == kBegin || (made >= longest && token != kEnd)) continue;
    const double next =
        score + static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(sum);
    if (token == kEnd) {
      const double judged = next / std::pow(static_cast<double>(made), options.length_penalty);
      if (judged > best.score) best = {judged, {begun.begin() + 1, begun.end()}};
      continue;
    }
    begun.push_back(token);
    try_all(begun, next, options, longest, salt, best);
    begun.pop_back();
  }
}

TEST(BeamSearch, AWideBeamFindsTheBestSentenceThereIs) {
  for (const double penalty : {0.0, 1.0, 2.0}) {
    for (uint64_t salt = 1; salt <= 20; ++salt) {
      // Wide enough for every beginning of 4 tokens, of which there are 3^4.
      const BeamOptions options = {.beam = 100,
                                   .length_penalty = penalty,
                                   .begin = kBegin,
                                   .end = kEnd,
                                   .never = {0, kBegin}};
      std::vector<int32_t> begun = {kBegin};
      Best best;
      try_all(begun, 0, options, 4, salt, best);
      EXPECT_EQ(found(options, 4, salt), best.tokens);
    }
  }
}

TEST(BeamSearch, ABeamOfOneIsGreedy) {
  const BeamOptions options = {.beam = 1, .begin = kBegin, .end = kEnd, .never = {0, kBegin}};
  for (uint64_t salt = 1; salt <= 20; ++salt) {
    std::vector<int32_t> begun = {kBegin};
    for (;;) {
      std::vector<float> logits = logits_after(begun, salt);
      logits[0] = logits[kBegin] = -1;
      const auto most = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
      if (most == kEnd || begun.size() == 6) break;
      begun.push_back(most);
    }
    EXPECT_EQ(found(options, 6, salt), std::vector<int32_t>(begun.begin() + 1, begun.end()));
  }
}

}  // namespace
}  // namespace thimble
