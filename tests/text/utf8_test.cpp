#include "text/utf8.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

TEST(Utf8, MalformedBytesAreFound) {
  EXPECT_EQ(find_malformed("plain, ä, €, 😀"), std::nullopt);
  EXPECT_EQ(find_malformed("\xf4\x8f\xbf\xbf"), std::nullopt);  // the last character there is
  EXPECT_EQ(find_malformed("ab\xff"), 2u);
  EXPECT_EQ(find_malformed("a\x80"), 1u);  // begins in the middle of one
  EXPECT_EQ(find_malformed("\xc3"), 0u);   // ends in the middle of one
  EXPECT_EQ(find_malformed("x\xe2\x82"), 1u);
  EXPECT_EQ(find_malformed("\xc0\x80"), 0u);  // longer than it need be
  EXPECT_EQ(find_malformed("\xe0\x80\xaf"), 0u);
  EXPECT_EQ(find_malformed("\xed\xa0\x80"), 0u);      // half of a pair
  EXPECT_EQ(find_malformed("\xf4\x90\x80\x80"), 0u);  // above the last
}

TEST(Utf8, TextComesBack) {
  const std::string text = "aä€😀\u0300";
  EXPECT_EQ(encode_utf8(decode_utf8(text)), text);
  EXPECT_EQ(characters_of("aä€"), (std::vector<std::string_view>{"a", "ä", "€"}));
}

// As Python's str.lower() has it.
TEST(Utf8, LowerCase) {
  EXPECT_EQ(lower_case("ÄÖÜ ẞ Straße ÇA Ω Я"), "äöü ß straße ça ω я");
  EXPECT_EQ(lower_case("ΣΊΣΥΦΟΣ Σ ΑΣ. ΑΣΒ"), "σίσυφος σ ας. ασβ");
  // Marks are looked past, and letters without cases end no word: an accent of its own, Chinese.
  EXPECT_EQ(lower_case("ΟΔΟ\u0301Σ ΑΣ\u0301Α ΑΣ中 中Σ ΑΣ:Β ΑΣ^"),
            "οδο\u0301ς ασ\u0301α ας中 中σ ασ:β ας^");
  EXPECT_EQ(lower_case("İI"), "i̇i");
  EXPECT_EQ(lower_case("already 123 – lower"), "already 123 – lower");
}

TEST(Utf8, WhiteSpaceIsMoreThanSpaces) {
  EXPECT_EQ(split_spaces("  a  b\tc "), (std::vector<std::string_view>{"a", "b\tc"}));
  EXPECT_EQ(split_white(" a\t\u00a0b\u2003c\u3000"),
            (std::vector<std::string_view>{"a", "b", "c"}));
}

class Lines : public testing::Test {
 protected:
  std::vector<std::string> lines(std::string_view content) {
    spill(folder_ / "text", content);
    return read_lines(folder_ / "text");
  }
  TemporaryFolder folder_;
};

TEST_F(Lines, EndAsTheyMay) {
  using All = std::vector<std::string>;
  EXPECT_EQ(lines(""), All());
  EXPECT_EQ(lines("a\nb\n"), (All{"a", "b"}));
  EXPECT_EQ(lines("a\nb"), (All{"a", "b"}));  // no newline at the end
  EXPECT_EQ(lines("a\r\n\r\nb\r\n"), (All{"a", "", "b"}));
  EXPECT_EQ(lines("\xef\xbb\xbfw\n"), All{"w"});
  EXPECT_EQ(lines("\n\n"), (All{"", ""}));
}

TEST_F(Lines, OfAnyNumber) {
  std::string all;
  for (int i = 0; i < 30'000; ++i) all += std::to_string(i) + "\n";
  const std::vector<std::string> read = lines(all);
  ASSERT_EQ(read.size(), 30'000u);
  for (int i = 0; i < 30'000; ++i) ASSERT_EQ(read[static_cast<size_t>(i)], std::to_string(i));
}

TEST_F(Lines, MalformedOnesAreNamed) {
  EXPECT_TRUE(throws_saying<UserError>(
      [&] {
        lines(
            "good\nb\xff"
            "d\n");
      },
      "text", "not UTF-8", "line 2", "byte 2", "iconv -t UTF-8"));
  // Files that people give by mistake: a file as it was fetched, and what another system calls text.
  EXPECT_TRUE(throws_saying<UserError>([&] { lines("\x1f\x8b\x08\x08 ..."); }, "`gunzip`"));
  EXPECT_TRUE(throws_saying<UserError>(
      [&] {
        lines(
            "\xfd"
            "7zXZ");
      },
      "`unxz`"));
  EXPECT_TRUE(throws_saying<UserError>(
      [&] {
        lines(
            std::string_view("\xff\xfe"
                             "a\0",
                             4));
      },
      "iconv -f UTF-16 -t UTF-8"));
  EXPECT_TRUE(throws_saying<UserError>([&] { lines(std::string_view("a\0b", 3)); },
                                       "null character in line 1"));
  EXPECT_TRUE(
      throws_saying<UserError>([&] { lines(std::string(3 << 20, 'x')); }, "line 1", "break it up"));
}

}  // namespace
}  // namespace thimble
