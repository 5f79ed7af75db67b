#include "base/io/sha256.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/io/sha256_compress.h"

namespace thimble {
namespace {

using Compress = void (*)(Sha256State& state, const std::byte* blocks, size_t count);

void compress(Sha256State& state, const std::byte* blocks, size_t count) {
  static const Compress chosen =
      has_sha256_instructions() ? sha256_compress_x86 : sha256_compress_portable;
  chosen(state, blocks, count);
}

}  // namespace

void Sha256::update(std::span<const std::byte> bytes) {
  const size_t waiting = length_ % 64;
  length_ += bytes.size();
  if (waiting != 0) {
    const size_t taken = std::min(bytes.size(), 64 - waiting);
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<ptrdiff_t>(waiting));
    bytes = bytes.subspan(taken);
    if (waiting + taken < 64) return;
    compress(state_, block_.data(), 1);
  }
  compress(state_, bytes.data(), bytes.size() / 64);
  bytes = bytes.subspan(bytes.size() / 64 * 64);
  std::copy(bytes.begin(), bytes.end(), block_.begin());
}

void Sha256::finish() {
  const uint64_t bits = length_ * 8;
  // One set bit, zeros up to eight bytes short of a whole block, then the length in bits.
  std::array<std::byte, 72> padding{};
  padding[0] = std::byte{0x80};
  const size_t zeros_end = 1 + (119 - length_ % 64) % 64;
  for (size_t i = 0; i < 8; ++i) {
    padding[zeros_end + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  }
  update(std::span(padding).first(zeros_end + 8));
}

Sha256::Digest Sha256::digest() const {
  Sha256 copy = *this;
  copy.finish();
  Digest result;
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<uint8_t>(copy.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return result;
}

std::string Sha256::hex() const {
  std::string text;
  for (const uint8_t byte : digest()) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex();
}

}  // namespace thimble
