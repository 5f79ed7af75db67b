#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace thimble {
namespace {

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const std::byte* from) {
  return (std::to_integer<uint32_t>(from[0]) << 24) | (std::to_integer<uint32_t>(from[1]) << 16) |
         (std::to_integer<uint32_t>(from[2]) << 8) | std::to_integer<uint32_t>(from[3]);
}

}  // namespace

void Sha256::compress(const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = load_big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t choice = (e & f) ^ (~e & g);
    const uint32_t t1 = h + sum1 + choice + kRound[i] + w[i];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + sum0 + majority;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += added[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  const size_t waiting = length_ % 64;
  length_ += bytes.size();
  if (waiting != 0) {
    const size_t taken = std::min(bytes.size(), 64 - waiting);
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<ptrdiff_t>(waiting));
    bytes = bytes.subspan(taken);
    if (waiting + taken < 64) return;
    compress(block_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) compress(bytes.data());
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
