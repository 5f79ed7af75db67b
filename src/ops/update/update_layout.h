// Where the inputs of `update` and `update_8bit` are, for every backend alike. Inputs of their own,
// those in brackets only where the rule, the rounding or the storage wants them:
//
//   update       w, g, state ...,              [c,] lr, [number]
//   update_8bit  w, g, codes, scales, ...,     [c,] lr, [number]
//   update_8bit  w, codes of g,                [c,] lr, scales of g      a rule without state: folded
//
//   c       what the rounding of w has left over so far (attr rounding: kahan), in w's dtype
//   number  f32 [1], of the step, from 1 on
// Behind them:
//   factor f32 [1]            scaled (0, 1): what the gradient is multiplied by; 0: nothing changes
//   key i64 [2]               rounding stochastic: seed, and step + 2^32 rank, of the random bits;
//                             attrs stream, and shard (0, 1): tensors are the rank's part of larger
//                             ones, whose elements' bits they get
// Outputs are w, the states and c: output k is the next version of input k + 1 (w: of input 0).
#pragma once

#include <algorithm>

#include "base/number/philox.h"
#include "graph/attrs.h"
#include "graph/update_rule.h"

namespace thimble {

inline constexpr bool rounds_some_state_at_random(const UpdateRule& rule) {
  return std::any_of(rule.states.begin(), rule.states.end(),
                     [](const RuleState& state) { return state.stochastic; });
}

// Inputs by number; -1: not there.
struct UpdateLayout {
  int tensors = 2;  // that come before lr: weight, gradient, state, compensation
  int compensation = -1;
  int rate = -1, number = -1, scales = -1;
  int own = 0;  // inputs in front of factor and key

  constexpr int outputs() const { return tensors - 1; }
};

// coded: of update_8bit.
constexpr UpdateLayout update_layout(const UpdateRule& rule, bool coded, bool compensated) {
  UpdateLayout at;
  at.tensors += static_cast<int>(rule.states.size()) * (coded ? 2 : 1);
  if (compensated) at.compensation = at.tensors++;
  at.rate = at.tensors;
  at.own = at.rate + 1;
  if (rule.reads_step || (coded && rounds_some_state_at_random(rule))) at.number = at.own++;
  if (coded && rule.states.size() == 0) at.scales = at.own++;
  return at;
}

inline bool is_compensated(const Attrs& attrs) {
  return attrs.text("rounding", "nearest") == "kahan";
}
inline bool is_stochastic(const Attrs& attrs) {
  return attrs.text("rounding", "nearest") == "stochastic";
}

// Where factor and key are.
struct ExtraPlaces {
  int factor = -1, key = -1;
};
inline ExtraPlaces update_extras(size_t own_inputs, const Attrs& attrs) {
  ExtraPlaces extras;
  int next = static_cast<int>(own_inputs);
  if (attrs.integer("scaled", 0) != 0) extras.factor = next++;
  if (is_stochastic(attrs)) extras.key = next++;
  return extras;
}

// The random word of element i of output `output`: Philox with key = seed and
// counter = { i / 4, stream, step, 16 + output }, i counted from the first element of all parts.
struct RoundingKey {
  PhiloxKey key;
  uint32_t stream, step;
  int64_t first;  // quad of these tensors

  uint32_t word(int output, int64_t i) const {
    const auto words = philox(
        {static_cast<uint32_t>(first + i / 4), stream, step, 16u + static_cast<uint32_t>(output)},
        key);
    return words[static_cast<size_t>(i % 4)];
  }
};

// Of tensors of so many elements: parts are whole quads.
inline RoundingKey rounding_key(const int64_t* key, const Attrs& attrs, int64_t elements) {
  const bool part = attrs.integer("shard", 0) != 0;
  return {philox_key(static_cast<uint64_t>(key[0])),
          static_cast<uint32_t>(attrs.integer("stream", 0)), static_cast<uint32_t>(key[1]),
          part ? (key[1] >> 32) * (elements / 4) : 0};
}

}  // namespace thimble
