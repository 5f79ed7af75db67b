#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

}  // namespace
}  // namespace thimble
