// SHA-256 (FIPS 180-4) over a stream of bytes: a name for weights and files that two runs can
// compare. Own code: it is two short files, and the alternative is a dependency on a crypto
// library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace thimble {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  void update(std::span<const std::byte> bytes);
  // The digest of everything so far; the stream may be continued.
  Digest digest() const;
  std::string hex() const;  // 64 lower-case digits

 private:
  void finish();

  std::array<uint32_t, 8> state_ = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                    0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<std::byte, 64> block_{};  // the first length_ % 64 bytes wait for the rest
  uint64_t length_ = 0;                // in bytes
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace thimble
