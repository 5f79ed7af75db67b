#include "base/io/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/sha256_compress.h"
#include "base/number/philox.h"

namespace thimble {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// From FIPS 180-4 and the NIST example values.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(bytes_of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 7));
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string_view whole = std::string_view(text).substr(0, length);
    const std::string expected = sha256_hex(bytes_of(whole));
    for (const size_t piece : {1, 3, 63, 64, 65}) {
      Sha256 sha;
      for (size_t at = 0; at < whole.size(); at += piece) {
        sha.update(bytes_of(whole.substr(at, piece)));
      }
      ASSERT_EQ(sha.hex(), expected) << length << " bytes in pieces of " << piece;
    }
  }
}

TEST(Sha256, ADigestDoesNotEndTheStream) {
  Sha256 sha;
  sha.update(bytes_of("ab"));
  (void)sha.digest();
  sha.update(bytes_of("c"));
  EXPECT_EQ(sha.hex(), sha256_hex(bytes_of("abc")));
}

using Compress = void (*)(Sha256State& state, const std::byte* blocks, size_t count);

std::vector<Compress> compressions() {
  std::vector<Compress> all = {sha256_compress_portable};
  if (has_sha256_instructions()) all.push_back(sha256_compress_x86);
  return all;
}

// "abc" with its padding: the block that FIPS 180-4 works through, and the state it ends with.
TEST(Sha256, EachCompressionKnowsTheStandardsBlock) {
  std::array<std::byte, 64> block{};
  block[0] = std::byte{'a'}, block[1] = std::byte{'b'}, block[2] = std::byte{'c'};
  block[3] = std::byte{0x80}, block[63] = std::byte{24};
  const Sha256State start = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                             0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  const Sha256State end = {0xba7816bfu, 0x8f01cfeau, 0x414140deu, 0x5dae2223u,
                           0xb00361a3u, 0x96177a9cu, 0xb410ff61u, 0xf20015adu};
  for (const Compress compress : compressions()) {
    Sha256State state = start;
    compress(state, block.data(), 0);
    EXPECT_EQ(state, start);
    compress(state, block.data(), 1);
    EXPECT_EQ(state, end);
  }
}

TEST(Sha256, CompressionsAgreeFromAnyStateAndAddress) {
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 512; ++i) {
    for (const uint32_t word : philox({i, 0, 0, 0}, {1, 2})) words.push_back(word);
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
  for (size_t at = 0; at < 67; ++at) {
    Sha256State start;
    std::copy_n(words.begin() + static_cast<ptrdiff_t>(at), start.size(), start.begin());
    for (const size_t count : {1, 2, 3, 100}) {
      Sha256State expected = start;
      sha256_compress_portable(expected, bytes.data() + at, count);
      for (const Compress compress : compressions()) {
        Sha256State state = start;
        compress(state, bytes.data() + at, count);
        ASSERT_EQ(state, expected) << count << " blocks from byte " << at;
      }
    }
  }
}

}  // namespace
}  // namespace thimble
