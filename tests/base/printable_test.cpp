// Names out of files reach people through messages and tables: neither may carry what a terminal obeys.
#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace thimble {
namespace {

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("plain, with \xc3\xa9 and \xe2\x82\xac"),
            "plain, with \xc3\xa9 and \xe2\x82\xac");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable(std::string_view("\0\a", 2)), "\\x00\\x07");
  EXPECT_EQ(printable("\x7f"), "\\u007f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");  // CSI in one character
}

TEST(Printable, WhatIsNotUtf8IsEscaped) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // longer than it has to be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80x"), "\\xf4\\x90\\x80\\x80x");
}

TEST(Printable, TwiceIsOnce) {
  for (const char* text : {"\x1b[2J", "a\nb", "\xff", "back\\slash"}) {
    EXPECT_EQ(printable(printable(text)), printable(text));
  }
  EXPECT_EQ(printable("back\\slash"), "back\\slash");
}

TEST(Printable, LinesStayWhereTheyAreOurs) {
  EXPECT_EQ(printable_lines("a\n\x1b"), "a\n\\x1b");
  EXPECT_EQ(printable_message("faults:\n  one\n  two\nforged"), "faults:\n  one\n  two\\nforged");
}

TEST(Printable, EveryErrorIs) {
  try {
    user_error("there is no '{}'", "\x1b]0;title\x07");
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "there is no '\\x1b]0;title\\x07'");
  }
  try {
    internal_check(false, std::string("'\x1b' is not there"));
  } catch (const InternalError& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\x1b'), std::string_view::npos);
  }
}

}  // namespace
}  // namespace thimble
