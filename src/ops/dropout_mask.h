// The random mask of dropout, a pure function of (seed, step, microbatch, stream, element):
// computed again anywhere, in any order, it has the same bits. Shared by every kernel of dropout.
//
//   Philox key      seed
//   Philox counter  { element / 4, stream, step mod 2^32, microbatch }
//   word            element mod 4
#pragma once

#include "base/philox.h"

namespace thimble {

// An element index must fit the counter's first word.
inline constexpr int64_t kMaxDropoutElements = int64_t{1} << 34;

struct DropoutMask {
  PhiloxKey key;
  uint32_t stream, step, microbatch;
  float p;  // probability to drop

  // rng is {seed, step, microbatch}.
  DropoutMask(const int64_t* rng, int64_t stream_number, double drop)
      : key(philox_key(static_cast<uint64_t>(rng[0]))),
        stream(static_cast<uint32_t>(stream_number)),
        step(static_cast<uint32_t>(rng[1])),
        microbatch(static_cast<uint32_t>(rng[2])),
        p(static_cast<float>(drop)) {}

  // The random words of elements [4 * block, 4 * block + 4).
  PhiloxCounter words(int64_t block) const {
    return philox({static_cast<uint32_t>(block), stream, step, microbatch}, key);
  }
  bool keeps(uint32_t word) const { return uniform_from(word) >= p; }
};

}  // namespace thimble
