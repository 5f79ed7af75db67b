// Philox 4x32-10 (Salmon et al. 2011): a counter-based generator. The same key and counter always
// give the same four words, so anything random can be recomputed, anywhere, to the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace thimble {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

constexpr PhiloxKey philox_key(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// Uniform in [0, 1) with 24 bits, exactly representable in a float.
constexpr float uniform_from(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// FNV-1a: a stable 64-bit name for a string, used to give named things their own random streams.
constexpr uint64_t stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace thimble
