// Bitmaps: one bit per element, the lowest bit of a byte first. Bits of the last byte beyond the
// last element mean nothing and are left alone.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace thimble {

constexpr int64_t bitmap_bytes(int64_t elements) { return (elements + 7) / 8; }

inline bool test_bit(const uint8_t* map, int64_t at) {
  return ((map[at / 8] >> (at % 8)) & 1) != 0;
}
inline void set_bit(uint8_t* map, int64_t at) {
  map[at / 8] = static_cast<uint8_t>(map[at / 8] | (1 << (at % 8)));
}
inline void clear_bit(uint8_t* map, int64_t at) {
  map[at / 8] = static_cast<uint8_t>(map[at / 8] & ~(1 << (at % 8)));
}

// The bits of [begin, end) that lie in byte `at`; the others are zero.
inline unsigned bits_within(const uint8_t* map, int64_t at, int64_t begin, int64_t end) {
  unsigned bits = map[at];
  if (8 * at < begin) bits &= 0xffu << (begin - 8 * at);
  if (8 * at + 8 > end) bits &= 0xffu >> (8 * at + 8 - end);
  return bits;
}

// Calls body(element) for every one in [begin, end), in order.
template <class Body>
void for_each_one(const uint8_t* map, int64_t begin, int64_t end, const Body& body) {
  if (begin >= end) return;
  for (int64_t at = begin / 8; at <= (end - 1) / 8; ++at) {
    for (unsigned bits = bits_within(map, at, begin, end); bits != 0; bits &= bits - 1) {
      body(8 * at + std::countr_zero(bits));
    }
  }
}

inline int64_t count_ones(const uint8_t* map, int64_t begin, int64_t end) {
  int64_t count = 0;
  if (begin >= end) return count;
  int64_t at = begin / 8;
  count += std::popcount(bits_within(map, at++, begin, end));
  for (; at + 8 <= end / 8; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, map + at, sizeof word);
    count += std::popcount(word);
  }
  for (; at <= (end - 1) / 8; ++at) count += std::popcount(bits_within(map, at, begin, end));
  return count;
}

}  // namespace thimble
