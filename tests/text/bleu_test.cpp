// BLEU against figures that sacreBLEU 2.6.0 gave for the same lines.
#include "text/bleu.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

const std::vector<std::string> kTranslations = {"The cat sat on the mat .",
                                                "A man is riding a bike, isn't he?",
                                                "Es kostet 3,50 Euro - oder 4.5%?",
                                                "&quot;Hello&quot; &amp; goodbye",
                                                "",
                                                "ein Hund läuft über die Straße",
                                                "Ich bin's (wirklich)!",
                                                "1-2 und 3-4",
                                                "Ägypten ist SCHÖN",
                                                "don't stop",
                                                "«Oui» — dit-il…",
                                                "x"};
const std::vector<std::string> kReferences = {"The cat is on the mat.",
                                              "A man rides a bike, doesn't he?",
                                              "Es kostet 3,50 Euro oder 4.5 %?",
                                              "\"Hello\" & goodbye",
                                              "Nothing here",
                                              "Ein Hund läuft über die Straße .",
                                              "Ich bin es (wirklich)!",
                                              "1-2 und 3 - 4",
                                              "Ägypten ist schön",
                                              "Don't stop now",
                                              "« Oui » — dit-il …",
                                              "y"};
const std::vector<std::string> kOthers = {"On the mat sat the cat.",
                                          "A man rides his bike.",
                                          "3,50 Euro",
                                          "Hello and goodbye",
                                          "",
                                          "Ein Hund rennt",
                                          "Ich",
                                          "1-2",
                                          "ägypten",
                                          "Stop",
                                          "Oui",
                                          "x y z"};

Bleu bleu_of(const BleuOptions& options, bool both) {
  BleuCounter counter(options);
  for (size_t i = 0; i < kTranslations.size(); ++i) {
    std::vector<std::string> references = {kReferences[i]};
    if (both) references.push_back(kOthers[i]);
    counter.add(kTranslations[i], references);
  }
  return counter.result();
}

struct Case {
  bool lower_case, tokenise, both;
  double score;
  const char* text;
};

TEST(Bleu, IsThatOfSacreBleu) {
  const Case cases[] = {
      {false, true, false, 52.67815042134433,
       "BLEU = 52.68 79.7/66.7/52.6/41.4 (BP = 0.903 ratio = 0.908 hyp_len = 59 ref_len = 65)"},
      {false, true, true, 58.92785245725127,
       "BLEU = 58.93 83.1/66.7/52.6/41.4 (BP = 1.000 ratio = 1.054 hyp_len = 59 ref_len = 56)"},
      {false, false, false, 25.500413262942107,
       "BLEU = 25.50 60.9/37.1/20.0/18.8 (BP = 0.840 ratio = 0.852 hyp_len = 46 ref_len = 54)"},
      {false, false, true, 31.708360000160123,
       "BLEU = 31.71 67.4/40.0/20.0/18.8 (BP = 1.000 ratio = 1.122 hyp_len = 46 ref_len = 41)"},
      {true, true, false, 57.16323111604676,
       "BLEU = 57.16 84.7/72.9/57.9/44.8 (BP = 0.903 ratio = 0.908 hyp_len = 59 ref_len = 65)"},
      {true, true, true, 63.905854223554684,
       "BLEU = 63.91 88.1/72.9/57.9/44.8 (BP = 1.000 ratio = 1.054 hyp_len = 59 ref_len = 56)"},
      {true, false, false, 32.20393823360865,
       "BLEU = 32.20 67.4/45.7/28.0/25.0 (BP = 0.840 ratio = 0.852 hyp_len = 46 ref_len = 54)"},
      {true, false, true, 41.16688321150111,
       "BLEU = 41.17 73.9/48.6/32.0/25.0 (BP = 1.000 ratio = 1.122 hyp_len = 46 ref_len = 41)"},
  };
  for (const Case& one : cases) {
    const Bleu bleu = bleu_of({one.lower_case, one.tokenise}, one.both);
    EXPECT_NEAR(bleu.score, one.score, 1e-11);  // sums of logarithms in the same order
    EXPECT_EQ(to_string(bleu), one.text);
  }
}

std::string of_one(const std::string& translation, const std::string& reference) {
  BleuCounter counter({});
  counter.add(translation, std::vector<std::string>{reference});
  return to_string(counter.result());
}

TEST(Bleu, OrdersWithoutAMatchAreSmoothed) {
  EXPECT_EQ(of_one("a x c y", "a b c d e"),
            "BLEU = 14.79 50.0/16.7/12.5/12.5 (BP = 0.779 ratio = 0.800 hyp_len = 4 ref_len = 5)");
  EXPECT_EQ(of_one("a b c", "a b c d e"),
            "BLEU = 0.00 100.0/100.0/100.0/0.0 (BP = 0.513 ratio = 0.600 hyp_len = 3 ref_len = 5)");
  EXPECT_EQ(of_one("the cat sat", "a b c d e"),
            "BLEU = 0.00 0.0/0.0/0.0/0.0 (BP = 0.513 ratio = 0.600 hyp_len = 3 ref_len = 5)");
  EXPECT_EQ(of_one("a", "a"),
            "BLEU = 0.00 100.0/0.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 1 ref_len = 1)");
}

TEST(Bleu, TokensAreThoseOf13a) {
  EXPECT_EQ(tokenise_13a("Es kostet 3,50 Euro - oder 4.5%?"), "Es kostet 3,50 Euro - oder 4.5 % ?");
  EXPECT_EQ(tokenise_13a("1-2, 3.-4 a.b ,x 5, 6."), "1 - 2 , 3 . -4 a . b , x 5 , 6 .");
  EXPECT_EQ(tokenise_13a("«Oui» — dit-il…"), "«Oui» — dit-il…");
  EXPECT_EQ(tokenise_13a("a&lt;b&amp;c <skipped>z"), "a < b & c z");
  EXPECT_EQ(tokenise_13a("…., é.ö,ü."), "… . , é . ö , ü .");
  EXPECT_EQ(tokenise_13a("U.S.A. 1,000.5-6"), "U . S . A . 1,000.5 - 6");
}

TEST(Bleu, TheSignatureSaysHow) {
  EXPECT_EQ(signature_of({}, 1), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
  EXPECT_EQ(signature_of({true, false}, 2), "nrefs:2|case:lc|eff:no|tok:none|smooth:exp");
}

TEST(Bleu, FilesMustGoTogether) {
  const TemporaryFolder folder;
  spill(folder / "two", "a b c d\ne f g h");
  spill(folder / "three", "a b c d\ne f g h\n\n");
  const std::vector<std::string> same = {folder / "two"}, other = {folder / "three"};
  EXPECT_NEAR(bleu_of_files(folder / "two", same, {}).score, 100, 1e-10);  // exp of a sum of logs
  EXPECT_TRUE(throws_saying<UserError>([&] { bleu_of_files(folder / "two", other, {}); }, "2 lines",
                                       "has 3"));
  spill(folder / "empty", "");
  EXPECT_TRUE(
      throws_saying<UserError>([&] { bleu_of_files(folder / "empty", same, {}); }, "is empty"));
}

}  // namespace
}  // namespace thimble
