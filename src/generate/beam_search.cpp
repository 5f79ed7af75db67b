#include "generate/beam_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace thimble {
namespace {

struct Candidate {
  double score = 0;
  size_t from = 0;  // which beginning
  int32_t token = 0;
};

// Better ones first; equal ones in a fixed order, so that a translation does not depend on the sort.
bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.from != b.from ? a.from < b.from : a.token < b.token;
}

double log_of_sum(std::span<const float> logits) {
  const float most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - most));
  return static_cast<double>(most) + std::log(sum);
}

}  // namespace

Beam::Beam(const BeamOptions& options, int64_t longest)
    : options_(options), longest_(std::max<int64_t>(1, longest)) {
  live_.push_back({{options.begin}, 0});
}

void Beam::advance(const std::function<std::span<const float>(size_t i)>& logits) {
  internal_check(!done_, "a sentence that has ended goes on");
  const auto made = static_cast<int64_t>(live_.front().tokens.size());  // with this token
  const bool last = made >= longest_;
  const auto width = static_cast<size_t>(options_.beam);
  // Twice as many as go on: as many may end.
  std::vector<Candidate> all;
  for (size_t i = 0; i < live_.size(); ++i) {
    const std::span<const float> scores = logits(i);
    const double norm = log_of_sum(scores);
    std::vector<Candidate> own;
    for (size_t token = 0; token < scores.size(); ++token) {
      const auto id = static_cast<int32_t>(token);
      const bool allowed =
          last ? id == options_.end : std::ranges::find(options_.never, id) == options_.never.end();
      if (!allowed) continue;
      own.push_back({live_[i].score + static_cast<double>(scores[token]) - norm, i, id});
    }
    const size_t kept = std::min(own.size(), 2 * width);
    std::ranges::partial_sort(own, own.begin() + static_cast<ptrdiff_t>(kept), better);
    all.insert(all.end(), own.begin(), own.begin() + static_cast<ptrdiff_t>(kept));
  }
  std::ranges::sort(all, better);
  all.resize(std::min(all.size(), 2 * width));
  std::vector<Hypothesis> next;
  for (size_t rank = 0; rank < all.size() && next.size() < width; ++rank) {
    const Candidate& candidate = all[rank];
    Hypothesis hypothesis = live_[candidate.from];
    hypothesis.score = candidate.score;
    if (candidate.token != options_.end) {
      hypothesis.tokens.push_back(candidate.token);
      next.push_back(std::move(hypothesis));
    } else if (rank < width && finished_.size() < width) {
      hypothesis.score /= std::pow(static_cast<double>(made), options_.length_penalty);
      finished_.push_back(std::move(hypothesis));
    }
  }
  done_ = finished_.size() >= width || next.empty();
  if (!done_) live_ = std::move(next);
}

std::vector<int32_t> Beam::best() const {
  internal_check(done_ && !finished_.empty(), "a sentence that has not ended");
  const auto best = std::ranges::max_element(finished_, {}, &Hypothesis::score);
  return {best->tokens.begin() + 1, best->tokens.end()};
}

}  // namespace thimble
