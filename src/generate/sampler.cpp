#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/number/philox.h"

namespace thimble {
namespace {

ValueId logits_of(const Model& model) {
  const auto found = std::ranges::find(model.outputs, "logits", &Output::name);
  const bool goes_on = model.query_positions.valid() && model.feeds.size() == 1 &&
                       model.feeds.front().field == "tokens" && found != model.outputs.end();
  user_check(goes_on, "{} does not go on with a text; choose a run of gpt", model.options.name);
  return found->value;
}

}  // namespace

int32_t choose_token(std::span<const float> logits, const SampleOptions& options, int64_t number) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const int64_t asked = options.temperature == 0 ? 1 : options.top_k;
  if (asked > 0 && asked < std::ssize(order)) {
    std::ranges::nth_element(order, order.begin() + (asked - 1), likelier);
    order.resize(static_cast<size_t>(asked));
    std::ranges::sort(order);
  }
  if (order.size() == 1) return order.front();
  const int32_t best = *std::ranges::min_element(order, likelier);
  const double most = static_cast<double>(logits[static_cast<size_t>(best)]);
  std::vector<double> up_to;  // sums of shares
  double sum = 0;
  for (const int32_t token : order) {
    const double logit = static_cast<double>(logits[static_cast<size_t>(token)]);
    up_to.push_back(sum += std::exp((logit - most) / options.temperature));
  }
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0},
             philox_key(options.seed));
  const double share = (static_cast<double>(words[0]) + 0.5) * 0x1p-32;
  const auto at = std::ranges::upper_bound(up_to, share * sum);
  return order[static_cast<size_t>(std::min(at - up_to.begin(), std::ssize(order) - 1))];
}

Sampler::Sampler(TrainedModel& trained)
    : trained_(trained), variants_(plan_sampling(trained.planned())) {
  for (const auto& variant : variants_) {
    logits_of(variant->model);
    bound_.push_back(trained_.bind(*variant));
  }
}

std::vector<int32_t> Sampler::go_on(std::vector<int32_t> text, int64_t count,
                                    const SampleOptions& options,
                                    const std::function<void(int32_t token)>& made) {
  check(text);
  const auto longest = static_cast<size_t>(variants_.back()->shape.length);
  std::vector<int32_t> seen = std::move(text), all;
  for (int64_t i = 0; i < count; ++i) {
    if (seen.size() > longest) {
      const size_t kept = std::max<size_t>(1, longest / 2);
      seen.erase(seen.begin(), seen.end() - static_cast<ptrdiff_t>(kept));
    }
    all.push_back(choose_token(logits_behind(seen), options, i));
    seen.push_back(all.back());
    if (made) made(all.back());
  }
  return all;
}

void Sampler::check(std::span<const int32_t> text) const {
  const Feed& feed = variants_.front()->model.feeds.front();
  user_check(!text.empty(), "there is nothing to go on with; give a --prompt");
  for (const int32_t token : text) {
    user_check(token >= 0 && token < feed.limit,
               "token {} of the prompt is beyond the vocabulary of {}", token, feed.limit);
  }
}

std::span<const float> Sampler::next(std::vector<int32_t> text) {
  check(text);
  const auto longest = static_cast<ptrdiff_t>(variants_.back()->shape.length);
  if (std::ssize(text) > longest) text.erase(text.begin(), text.end() - longest);
  return logits_behind(text);
}

std::span<const float> Sampler::logits_behind(std::span<const int32_t> text) {
  BoundStep& variant = *std::ranges::find_if(
      bound_, [&](const BoundStep& one) { return one.variant().shape.length >= std::ssize(text); });
  Program& program = variant.program();
  const Model& model = variant.model();
  variant.set_own_constants(trained_.planned().recipe.seed);
  const std::span<int32_t> tokens = program.view<int32_t>(model.feeds.front().value);
  std::ranges::fill(tokens, 0);
  std::ranges::copy(text, tokens.begin());
  program.view<int32_t>(model.query_positions)[0] = static_cast<int32_t>(text.size() - 1);
  program.run();
  const ValueId logits = logits_of(model);
  with_float_type(model.graph[logits].type.dtype, [&]<class T>(TypeTag<T>) {
    const std::span<T> made = program.view<T>(logits);
    logits_.resize(made.size());
    for (size_t i = 0; i < made.size(); ++i) logits_[i] = static_cast<float>(made[i]);
  });
  return logits_;
}

}  // namespace thimble
