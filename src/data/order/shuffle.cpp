#include "data/order/shuffle.h"

#include <bit>

#include "base/error.h"
#include "base/number/philox.h"

namespace thimble {
namespace {

// Four rounds suffice in theory; small domains (two bits for n = 3) want more to look uniform.
constexpr uint32_t kRounds = 8;

// A Feistel network over two halves of `half_bits` each: a bijection whatever the round function.
uint64_t feistel(uint64_t value, int half_bits, PhiloxKey key, uint64_t epoch) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = value >> half_bits, right = value & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxCounter counter = {static_cast<uint32_t>(right), round,
                                   static_cast<uint32_t>(epoch),
                                   static_cast<uint32_t>(epoch >> 32)};
    const uint64_t mixed = (left ^ philox(counter, key)[0]) & mask;
    left = right;
    right = mixed;
  }
  return (left << half_bits) | right;
}

}  // namespace

int64_t permuted(int64_t i, int64_t n, uint64_t seed, uint64_t epoch) {
  internal_check(i >= 0 && i < n, "permuted: no such position");
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1)));
  const int half_bits = bits < 2 ? 1 : (bits + 1) / 2;
  const PhiloxKey key = philox_key(seed ^ stable_hash("shuffle"));
  // Cycle walking: the network permutes a power of four, at most 4n; follow it until it lands
  // inside [0, n) again, which the cycle through `i` must.
  auto value = static_cast<uint64_t>(i);
  do {
    value = feistel(value, half_bits, key, epoch);
  } while (value >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(value);
}

}  // namespace thimble
