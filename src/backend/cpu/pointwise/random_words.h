// The words of a RandomStream, many at a time: sixteen counters of Philox go through it side by
// side.
#pragma once

#include "backend/cpu/parallel.h"
#include "base/number/random_stream.h"

namespace thimble {

inline constexpr int kRandomLanes = 16;
inline constexpr int64_t kRandomGroup = 4 * kRandomLanes;  // elements whose words are made together

// Words of the draws whose numbers (element / 4) are `draws`: draw l makes words [4 * l, 4 * l +
// 4).
THIMBLE_INLINE void random_draws(const RandomStream& stream, const uint32_t* draws,
                                 uint32_t* words) {
  uint32_t c0[kRandomLanes], c1[kRandomLanes], c2[kRandomLanes], c3[kRandomLanes];
  for (int l = 0; l < kRandomLanes; ++l) {
    c0[l] = draws[l];
    c1[l] = stream.stream;
    c2[l] = stream.step;
    c3[l] = stream.microbatch;
  }
  PhiloxKey key = stream.key;
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kRandomLanes; ++l) {
      const uint64_t product0 = uint64_t{0xD2511F53u} * c0[l];
      const uint64_t product1 = uint64_t{0xCD9E8D57u} * c2[l];
      c0[l] = static_cast<uint32_t>(product1 >> 32) ^ c1[l] ^ key[0];
      c1[l] = static_cast<uint32_t>(product1);
      c2[l] = static_cast<uint32_t>(product0 >> 32) ^ c3[l] ^ key[1];
      c3[l] = static_cast<uint32_t>(product0);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (int l = 0; l < kRandomLanes; ++l) {
    words[4 * l] = c0[l];
    words[4 * l + 1] = c1[l];
    words[4 * l + 2] = c2[l];
    words[4 * l + 3] = c3[l];
  }
}

// Words of the elements [group * kRandomGroup, (group + 1) * kRandomGroup).
THIMBLE_INLINE void random_words(const RandomStream& stream, int64_t group, uint32_t* words) {
  uint32_t draws[kRandomLanes];
  for (int l = 0; l < kRandomLanes; ++l) {
    draws[l] = static_cast<uint32_t>(group * kRandomLanes) + static_cast<uint32_t>(l);
  }
  random_draws(stream, draws, words);
}

// As uniform_from; signed integers convert faster.
THIMBLE_INLINE float uniform_of(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}

}  // namespace thimble
