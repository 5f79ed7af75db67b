#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/number/philox.h"
#include "model/kv_cache.h"

namespace thimble {
namespace {

// The likeliest tokens, in their own order, whose probabilities add up to top_p; at least one.
// `weights`: their probabilities but for a factor.
template <class Likelier>
void keep_nucleus(std::vector<int32_t>& tokens, double top_p, const Likelier& likelier,
                  const std::function<double(int32_t)>& weight) {
  double all = 0;
  for (const int32_t token : tokens) all += weight(token);
  const auto count = std::ssize(tokens);
  double sum = 0;
  ptrdiff_t sorted = 0, kept = 0;
  while (kept < count && (kept == 0 || sum < top_p * all)) {
    if (kept == sorted) {  // a few are enough, as a rule
      sorted = std::min(count, std::max<ptrdiff_t>(64, 8 * sorted));
      std::ranges::partial_sort(tokens.begin() + kept, tokens.begin() + sorted, tokens.end(),
                                likelier);
    }
    sum += weight(tokens[static_cast<size_t>(kept++)]);
  }
  tokens.resize(static_cast<size_t>(kept));
  std::ranges::sort(tokens);
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
  const auto weight = [&](int32_t token) {
    const double logit = static_cast<double>(logits[static_cast<size_t>(token)]);
    return std::exp((logit - most) / options.temperature);
  };
  if (options.top_p < 1) keep_nucleus(order, options.top_p, likelier, weight);
  std::vector<double> up_to;  // sums of shares
  double sum = 0;
  for (const int32_t token : order) up_to.push_back(sum += weight(token));
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0},
             philox_key(options.seed));
  const double share = (static_cast<double>(words[0]) + 0.5) * 0x1p-32;
  const auto at = std::ranges::upper_bound(up_to, share * sum);
  return order[static_cast<size_t>(std::min(at - up_to.begin(), std::ssize(order) - 1))];
}

Sampler::Sampler(PlannedGeneration planned)
    : planned_(std::move(planned)),
      model_(planned_.full(), planned_.backend(), planned_.recipe.seed) {
  for (const auto& step : planned_.steps) bound_.push_back(model_.bind(*step));
  std::ranges::reverse(bound_);
}

std::string Sampler::load(const TrainedWeights& from) {
  forget();
  return model_.load(from);
}

int64_t Sampler::vocabulary() const { return planned_.full().model.feeds.front().limit; }

void Sampler::begin(std::vector<int32_t> text, const SampleOptions& options) {
  check(text);
  text_ = std::move(text);
  options_ = options;
  number_ = 0;
}

std::optional<int32_t> Sampler::make_token() {
  const auto longest = static_cast<size_t>(planned_.context);
  if (text_.size() > longest) {
    const size_t kept = std::max<size_t>(1, longest / 2);
    text_.erase(text_.begin(), text_.end() - static_cast<ptrdiff_t>(kept));
  }
  const int32_t token = choose_token(logits_behind(text_), options_, number_++);
  if (std::ranges::find(options_.stop, token) != options_.stop.end()) return std::nullopt;
  text_.push_back(token);
  return token;
}

std::vector<int32_t> Sampler::go_on(std::vector<int32_t> text, int64_t count,
                                    const SampleOptions& options,
                                    const std::function<void(int32_t token)>& made) {
  begin(std::move(text), options);
  std::vector<int32_t> all;
  while (std::ssize(all) < count) {
    const std::optional<int32_t> token = make_token();
    if (!token) break;
    all.push_back(*token);
    if (made) made(*token);
  }
  return all;
}

void Sampler::check(std::span<const int32_t> text) const {
  user_check(!text.empty(), "there is nothing to go on with; give a text of one token at least");
  for (const int32_t token : text) {
    user_check(token >= 0 && token < vocabulary(),
               "token {} of the prompt is beyond the vocabulary of {}", token, vocabulary());
  }
}

std::span<const float> Sampler::next(std::vector<int32_t> text) {
  check(text);
  const auto longest = static_cast<ptrdiff_t>(planned_.context);
  if (std::ssize(text) > longest) text.erase(text.begin(), text.end() - longest);
  return logits_behind(text);
}

std::span<const float> Sampler::logits_behind(std::span<const int32_t> text) {
  if (planned_.cache > Bytes()) {
    compute_rest(text);
  } else {
    compute_all(text);
  }
  return logits_;
}

BoundStep& Sampler::step_for(int64_t tokens) {
  const auto holds = [&](const BoundStep& one) { return one.variant().shape.length >= tokens; };
  const auto found = std::ranges::find_if(bound_, holds);
  return found == bound_.end() ? bound_.back() : *found;
}

void Sampler::compute_all(std::span<const int32_t> text) {
  BoundStep& step = step_for(std::ssize(text));
  Program& program = step.program();
  const Model& model = step.model();
  step.set_own_constants(model_.seed());
  const std::span<int32_t> tokens = program.view<int32_t>(model.feeds.front().value);
  std::ranges::fill(tokens, 0);
  std::ranges::copy(text, tokens.begin());
  program.view<int32_t>(model.query_positions)[0] = static_cast<int32_t>(text.size() - 1);
  program.run();
  computed_ += std::ssize(text);
  read_logits(step);
}

// The last token is computed in any case: its logits are asked for.
void Sampler::compute_rest(std::span<const int32_t> text) {
  const auto known = std::ranges::mismatch(held_, text).in1 - held_.begin();
  int64_t at = std::min<int64_t>(known, std::ssize(text) - 1);
  held_.resize(static_cast<size_t>(at));
  while (at < std::ssize(text)) {
    BoundStep& step = step_for(std::ssize(text) - at);
    const int64_t count = std::min(step.variant().shape.length, std::ssize(text) - at);
    Program& program = step.program();
    const Model& model = step.model();
    step.set_own_constants(model_.seed());
    const std::span<int32_t> tokens = program.view<int32_t>(model.feeds.front().value);
    std::ranges::fill(tokens, 0);
    std::ranges::copy(text.subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                      tokens.begin());
    program.view<int32_t>(model.query_positions)[0] = static_cast<int32_t>(count - 1);
    const CachedGraph cache = find_kv_cache(model.graph);
    program.view<int32_t>(cache.first_position)[0] = static_cast<int32_t>(at);
    if (cache.positions.valid()) {
      const std::span<int32_t> positions = program.view<int32_t>(cache.positions);
      std::iota(positions.begin(), positions.end(), static_cast<int32_t>(at));
    }
    program.run();
    at += count;
    computed_ += count;
    held_.assign(text.begin(), text.begin() + at);
    if (at == std::ssize(text)) read_logits(step);
  }
}

void Sampler::read_logits(BoundStep& step) {
  const ValueId logits = logits_of_text(step.model());
  with_float_type(step.model().graph[logits].type.dtype, [&]<class T>(TypeTag<T>) {
    const std::span<T> made = step.program().view<T>(logits);
    logits_.resize(made.size());
    for (size_t i = 0; i < made.size(); ++i) logits_[i] = static_cast<float>(made[i]);
  });
  user_check(
      std::ranges::all_of(logits_, [](float logit) { return std::isfinite(logit); }),
      "the weights of {} give a next token whose logits are no numbers; choose other weights",
      step.model().options.name);
}

}  // namespace thimble
