// Tokens by Moses' rules, and back: what sacremoses gives for the same lines.
#include "text/tokenise.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

struct Line {
  const char* language;
  const char* text;
  const char* tokens;
  const char* back;  // null: as it was
};

TEST(Tokenise, AsMosesDoes) {
  const Line lines[] = {
      {"en", "Hello, world! It's 5,300.50 dollars (approx.) -- isn't it?",
       "Hello , world ! It &apos;s 5,300.50 dollars ( approx . ) -- isn &apos;t it ?", nullptr},
      {"en", "Mr. Smith's dog... the U.S. and e.g. this.",
       "Mr. Smith &apos;s dog ... the U.S. and e.g. this .", nullptr},
      {"en", "\"Quoted\" text & more; a/b <tag> [x] 50% of 1990's.",
       "&quot; Quoted &quot; text &amp; more ; a / b &lt; tag &gt; &#91; x &#93; 50 % of 1990 "
       "&apos;s .",
       "\"Quoted\" text & more; a / b < tag > [x] 50% of 1990's."},
      {"en", "He said 'no'. They're the boys' toys.",
       "He said &apos; no &apos; . They &apos;re the boys &apos; toys .", nullptr},
      {"en", "Dr. No came on Jan. 5.", "Dr. No came on Jan. 5 .", nullptr},
      {"en", "End with comma, 5,", "End with comma , 5 ,", nullptr},
      {"en", "weird   spaces\tand control", "weird spaces and control", "weird spaces and control"},
      {"en", "A. B. C.", "A. B. C.", nullptr},
      {"en", "What?!", "What ? !", nullptr},
      {"de", "Das kostet 3,50 Euro, nicht wahr?", "Das kostet 3,50 Euro , nicht wahr ?", nullptr},
      {"de", "Er sagte: „Ja!“ und ging...", "Er sagte : „ Ja ! “ und ging ...", nullptr},
      {"de", "Am 5. Mai 2014 war's so weit.", "Am 5. Mai 2014 war &apos; s so weit .",
       "Am 5. Mai 2014 war 's so weit."},
      {"de", "ca. 100 Leute usw. kamen.", "ca. 100 Leute usw. kamen .", nullptr},
  };
  for (const Line& line : lines) {
    EXPECT_EQ(moses_tokenise(line.text, line.language), line.tokens);
    EXPECT_EQ(moses_detokenise(line.tokens, line.language),
              line.back == nullptr ? line.text : line.back);
  }
}

TEST(Tokenise, OddLines) {
  for (const char* language : {"en", "de", "fr", ""}) {
    EXPECT_EQ(moses_tokenise("", language), "");
    EXPECT_EQ(moses_tokenise("  \t ", language), "");
    EXPECT_EQ(moses_tokenise("'", language), "&apos;");
    EXPECT_EQ(moses_tokenise(".", language), ".");
    EXPECT_EQ(moses_tokenise("....", language), "....");
    EXPECT_EQ(moses_detokenise("", language), "");
  }
  EXPECT_EQ(moses_tokenise("He left.'", "en"), "He left . &apos;");
  EXPECT_EQ(moses_tokenise("l'eau", "fr"), "l&apos; eau");
  EXPECT_EQ(moses_detokenise("l&apos; eau ?", "fr"), "l'eau ?");
  EXPECT_EQ(moses_detokenise("well @-@ known", "en"), "well-known");
}

}  // namespace
}  // namespace thimble
