// Merges and pieces that subword-nmt 0.3 gave for the same text.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"
#include "text/vocabulary.h"

namespace thimble {
namespace {

constexpr const char* kText[] = {
    "low low low low low lower lower newest newest newest newest newest newest widest widest "
    "widest",
    "über über übel grün grüner am grünsten hoho hohoho ho banana bananas anna ana",
    "the then there their other mother father brother thither"};
constexpr const char* kMerges =
    "#version: 0.2\nt h\ne r</w>\ns t</w>\ne st</w>\nl o\nw est</w>\nn e\nne west</w>\na n\nth "
    "er</w>\nlo w</w>\nü b\nw i\nwi d\nwid est</w>\nth e\nr ü\no ther</w>\no h\ng rü\nüb er</w>\nw "
    "er</w>\noh o</w>\nlo wer</w>\ngrü n\nb an\nban an\n";

std::vector<Merge> learnt(int64_t most) {
  WordCounts counts;
  for (const char* line : kText) count_words(line, counts);
  return learn_bpe(counts, most);
}

TEST(Bpe, LearnsWhatSubwordNmtLearns) {
  EXPECT_EQ(to_text(learnt(40)), kMerges);  // no pair is left that is there twice
  const std::vector<Merge> few = learnt(3);
  ASSERT_EQ(few.size(), 3u);
  EXPECT_EQ(few[2], (Merge{"s", "t</w>"}));
}

TEST(Bpe, CutsAsSubwordNmtCuts) {
  const Bpe bpe(learnt(40));
  const std::string pieces = bpe.apply("lowest wider  bananen über hohohoho x 😀 thermal");
  EXPECT_EQ(pieces,
            "lo@@ west wid@@ er ban@@ a@@ ne@@ n über h@@ oh@@ oh@@ oho x 😀 the@@ r@@ m@@ a@@ l");
  EXPECT_EQ(join_pieces(pieces), "lowest wider bananen über hohohoho x 😀 thermal");
  EXPECT_EQ(bpe.apply(""), "");
  EXPECT_EQ(join_pieces("ab@@"), "ab");  // a sentence that was cut short
}

TEST(Bpe, FilesOfMerges) {
  const TemporaryFolder folder;
  spill(folder / "codes", kMerges);
  EXPECT_EQ(read_merges(folder / "codes"), learnt(40));
  spill(folder / "other", "t h\n");
  EXPECT_TRUE(
      throws_saying<UserError>([&] { read_merges(folder / "other"); }, "other", "#version"));
  spill(folder / "odd", "#version: 0.2\nt h\nt h e\n");
  EXPECT_TRUE(throws_saying<UserError>([&] { read_merges(folder / "odd"); }, "odd", "line 3"));
  spill(folder / "none", "#version: 0.2\n");
  EXPECT_TRUE(throws_saying<UserError>([&] { read_merges(folder / "none"); }, "no BPE merges"));
}

TEST(Vocabulary, TheMostFrequentFirst) {
  const Vocabulary words({{"b", 2}, {"a", 2}, {"c@@", 5}, {"rare", 1}, {"</s>", 9}}, 2);
  ASSERT_EQ(words.size(), 7);
  EXPECT_EQ(words.piece(kEndToken), "</s>");
  EXPECT_EQ(words.piece(4), "c@@");
  EXPECT_EQ(words.piece(5), "a");  // by its text, where counts are equal
  EXPECT_EQ(words.encode("a rare b"), (std::vector<int32_t>{5, kUnknownToken, 6}));
  // Text cannot say what only the program says.
  EXPECT_EQ(words.encode("<pad> a </s> <s> <unk>"),
            (std::vector<int32_t>{kUnknownToken, 5, kUnknownToken, kUnknownToken, kUnknownToken}));
  EXPECT_EQ(words.decode({kBeginToken, 4, 5, kUnknownToken, kEndToken, kPadToken}), "c@@ a <unk>");
}

TEST(Vocabulary, OnDisk) {
  const TemporaryFolder folder;
  const Vocabulary words({{"b", 2}, {"ä", 3}}, 1);
  EXPECT_EQ(words.to_text(), "ä 3\nb 2\n");
  spill(folder / "dict", words.to_text());
  EXPECT_EQ(Vocabulary::read(folder / "dict").to_text(), words.to_text());
  spill(folder / "odd", "a 1\nb\n");
  EXPECT_TRUE(throws_saying<UserError>([&] { Vocabulary::read(folder / "odd"); }, "odd", "line 2"));
  spill(folder / "twice", "a 1\na 1\n");
  EXPECT_TRUE(
      throws_saying<UserError>([&] { Vocabulary::read(folder / "twice"); }, "line 2", "twice"));
}

TEST(Vocabulary, OfCharacters) {
  const TemporaryFolder folder;
  CharacterVocabulary letters;
  letters.count("ba\nä\\");
  letters.count("ab");
  EXPECT_EQ(letters.to_text(), "\\n\n\\\\\na\nb\nä\n");
  spill(folder / "letters", letters.to_text());
  const CharacterVocabulary read = CharacterVocabulary::read(folder / "letters");
  EXPECT_EQ(read.to_text(), letters.to_text());
  EXPECT_EQ(read.size(), 5);
  EXPECT_EQ(read.number_of(U'\n'), 0);
  EXPECT_EQ(read.number_of(U'ä'), 4);
  EXPECT_EQ(read.number_of(U'z'), -1);
  EXPECT_EQ(read.character(2), U'a');
}

}  // namespace
}  // namespace thimble
