// Choosing some of many at random, in one pass and without memory (Knuth's algorithm S).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/number/philox.h"

namespace thimble {

// Of the choices of a run that concern `name`, by their purpose.
constexpr PhiloxKey random_choice_key(uint64_t seed, std::string_view name,
                                      std::string_view purpose) {
  return philox_key(seed ^ stable_hash(name) ^ (stable_hash(purpose) << 1));
}

// Takes exactly `wanted` of `offered` things that are shown to it one after another; every set of
// them is as likely as any other. REQUIRES: 0 <= wanted <= offered < 2^32.
class RandomChoice {
 public:
  RandomChoice(PhiloxKey key, int64_t step, int64_t wanted, int64_t offered)
      : key_(key),
        step_(static_cast<uint32_t>(step)),
        wanted_(static_cast<uint64_t>(wanted)),
        left_(static_cast<uint64_t>(offered)) {}

  // Whether the next one is taken. REQUIRES: called `offered` times at most.
  bool take() {
    if (shown_ % 4 == 0) words_ = philox({shown_ / 4, step_, 0, 2}, key_);
    const uint64_t word = words_[shown_++ % 4];
    const bool taken = ((word * left_--) >> 32) < wanted_;
    if (taken) --wanted_;
    return taken;
  }

 private:
  const PhiloxKey key_;
  const uint32_t step_;
  uint64_t wanted_;
  uint64_t left_;
  uint32_t shown_ = 0;
  PhiloxCounter words_{};
};

}  // namespace thimble
