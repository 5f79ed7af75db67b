#include "text/byte_bpe.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"
#include "base/io/json.h"

namespace thimble {
namespace {

const std::string kFolder = THIMBLE_TEST_TOKENIZER;

ByteBpe read_from(const std::string& folder) {
  return ByteBpe::read(folder + "/vocab.json", folder + "/merges.txt");
}

// gpt2/ is a vocabulary of 400 that ByteLevelBPETokenizer of `tokenizers` 0.23 learnt and saved; cases.json
// holds what it makes of some texts.
TEST(ByteBpe, MakesTheTokensOfTokenizers) {
  const ByteBpe bpe = read_from(kFolder);
  EXPECT_EQ(bpe.size(), 400);
  const nlohmann::json cases = read_json(kFolder + "/cases.json", "cases");
  ASSERT_GT(cases.size(), 10u);
  for (const nlohmann::json& one : cases) {
    const auto text = one["text"].get<std::string>();
    SCOPED_TRACE(text);
    EXPECT_EQ(bpe.encode(text), one["tokens"].get<std::vector<int32_t>>());
    EXPECT_EQ(bpe.decode(bpe.encode(text)), text);
  }
}

TEST(ByteBpe, NumbersBeyondTheVocabularySayNothing) {
  const ByteBpe bpe = read_from(kFolder);
  const std::vector<int32_t> some = {40, 4000, -1, 69};
  EXPECT_EQ(bpe.decode(some), bpe.decode(std::vector<int32_t>{40, 69}));
}

TEST(ByteBpe, FilesThatAreNoneAreRefused) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& vocabulary, const std::string& merges,
                           const std::string& saying) {
    spill(folder / "vocab.json", vocabulary);
    spill(folder / "merges.txt", merges);
    return throws_saying<UserError>([&] { read_from(folder.path()); }, saying);
  };
  EXPECT_TRUE(refuses("[1, 2]", "", "is no vocabulary"));
  EXPECT_TRUE(refuses("{}", "", "is no vocabulary"));
  EXPECT_TRUE(refuses(R"({"a": "b"})", "", "gives the token 'a' no number"));
  EXPECT_TRUE(refuses(R"({"a": -1})", "", "gives the token 'a' no number"));
  EXPECT_TRUE(refuses(R"({"a": 99999999999})", "", "gives the token 'a' no number"));
  EXPECT_TRUE(refuses(R"({"a": 0, "b": 0})", "", "has two tokens of number 0"));
  EXPECT_TRUE(refuses(R"({"a": 0, "b": 1})", "#version: 0.2\na\n", "line 2 should be two tokens"));
  EXPECT_TRUE(refuses(R"({"a": 0, "b": 1})", "a b\n", "names 'ab', which is not in"));
  EXPECT_TRUE(refuses(R"({"a": 0, "b": 1})", "a\xff b\n", "UTF-8"));
}

TEST(ByteBpe, ABytesTokenThatIsMissingIsNamed) {
  const TemporaryFolder folder;
  spill(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  spill(folder / "merges.txt", "a b");  // no newline at its end
  const ByteBpe bpe = read_from(folder.path());
  EXPECT_EQ(bpe.encode("abb"), (std::vector<int32_t>{2, 1}));
  EXPECT_TRUE(throws_saying<UserError>([&] { bpe.encode("abc"); }, "no token for the byte 99"));
}

}  // namespace
}  // namespace thimble
