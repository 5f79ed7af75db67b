// Random words for the elements of a tensor, a pure function of (seed, step, microbatch, stream,
// element): drawn again anywhere, in any order, they have the same bits.
//
//   Philox key      seed
//   Philox counter  { element / 4, stream, step mod 2^32, microbatch }
//   word            element mod 4
#pragma once

#include <span>

#include "base/number/philox.h"

namespace thimble {

// An element index must fit the counter's first word.
inline constexpr int64_t kMaxRandomElements = int64_t{1} << 34;

struct RandomStream {
  PhiloxKey key;
  uint32_t stream, step, microbatch;

  // rng is {seed, step, microbatch}; streams of one step draw independently.
  constexpr RandomStream(const int64_t* rng, int64_t stream_number)
      : key(philox_key(static_cast<uint64_t>(rng[0]))),
        stream(static_cast<uint32_t>(stream_number)),
        step(static_cast<uint32_t>(rng[1])),
        microbatch(static_cast<uint32_t>(rng[2])) {}

  // The words of elements [4 * block, 4 * block + 4).
  constexpr PhiloxCounter words(int64_t block) const {
    return philox({static_cast<uint32_t>(block), stream, step, microbatch}, key);
  }

  // Numbers in [0, 1) for the elements from `first` on. REQUIRES: first is a multiple of 4.
  void uniform(int64_t first, std::span<float> numbers) const {
    for (size_t i = 0; i < numbers.size(); i += 4) {
      const PhiloxCounter drawn = words((first + static_cast<int64_t>(i)) / 4);
      for (size_t j = 0; j < 4 && i + j < numbers.size(); ++j)
        numbers[i + j] = uniform_from(drawn[j]);
    }
  }
};

}  // namespace thimble
