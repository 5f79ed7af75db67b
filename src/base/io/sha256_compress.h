// The inner function of SHA-256, in plain C++ and in the instructions that processors have for it
// (five times as fast).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace thimble {

using Sha256State = std::array<uint32_t, 8>;

// Takes `count` blocks of 64 bytes into the state.
void sha256_compress_portable(Sha256State& state, const std::byte* blocks, size_t count);

bool has_sha256_instructions();
// The same to the bit. REQUIRES: has_sha256_instructions().
void sha256_compress_x86(Sha256State& state, const std::byte* blocks, size_t count);

}  // namespace thimble
