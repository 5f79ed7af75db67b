// Sampling options, against a reading of what they say that sorts everything and multiplies nothing
// out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number/philox.h"
#include "generate/sampler.h"

namespace thimble {
namespace {

// The tokens that may be chosen: of the top_k likeliest, as many as it takes, the likeliest first, for
// their probabilities among these to reach top_p.
std::vector<int32_t> allowed(const std::vector<float>& logits, const SampleOptions& options) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](int32_t token) { return logits[static_cast<size_t>(token)]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(options.top_k)));
  std::vector<double> weights;
  for (const int32_t token : order) {
    weights.push_back(
        std::exp(static_cast<double>(logits[static_cast<size_t>(token)]) / options.temperature));
  }
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || sum / all < options.top_p)) sum += weights[count++];
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

// By inverting the distribution of what is allowed, in the order of tokens.
int32_t chosen(const std::vector<float>& logits, const SampleOptions& options, int64_t number) {
  const std::vector<int32_t> tokens = allowed(logits, options);
  std::vector<double> weights;
  for (const int32_t token : tokens) {
    weights.push_back(
        std::exp(static_cast<double>(logits[static_cast<size_t>(token)]) / options.temperature));
  }
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(number), 0, 0, 0}, philox_key(options.seed));
  double left =
      (words[0] + 0.5) / 4294967296.0 * std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t at = 0;
  while (at + 1 < tokens.size() && left >= weights[at]) left -= weights[at++];
  return tokens[at];
}

TEST(ChooseToken, TopPIsTheSmallestSetThatReachesIt) {
  uint32_t state = 1;
  const auto draw = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) * 0x1p-24;
  };
  int64_t narrowed = 0;
  for (int64_t round = 0; round < 2000; ++round) {
    // From a few tokens to more than are sorted at once.
    std::vector<float> logits(static_cast<size_t>(2 + draw() * (round % 10 == 0 ? 3000 : 40)));
    for (float& logit : logits) logit = static_cast<float>(8 * draw() - 4);
    const SampleOptions options = {
        .temperature = 0.3 + 2 * draw(),
        .top_k = round % 3 == 0 ? static_cast<int64_t>(1 + 20 * draw()) : 0,
        .top_p = draw(),
        .seed = static_cast<uint64_t>(round)};
    const int32_t token = choose_token(logits, options, round);
    const std::vector<int32_t> tokens = allowed(logits, options);
    ASSERT_TRUE(std::ranges::binary_search(tokens, token)) << round;
    ASSERT_EQ(token, chosen(logits, options, round)) << round;
    narrowed += tokens.size() < logits.size() ? 1 : 0;
  }
  EXPECT_GT(narrowed, 1000);
}

TEST(ChooseToken, TopPAtItsEnds) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(choose_token(logits, {.top_p = 0}, i), 2);
    EXPECT_EQ(choose_token(logits, {.top_p = 0.62}, i), 2);  // 5/8
    EXPECT_NE(choose_token(logits, {.top_p = 0.63}, i), 0);  // 7/8
    EXPECT_EQ(choose_token(logits, {.top_p = 1}, i), choose_token(logits, {}, i));
  }
}

}  // namespace
}  // namespace thimble
