// Data sets of text, from raw lines to records.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "../file_support.h"
#include "base/error.h"
#include "base/field.h"
#include "base/io/file.h"
#include "data/dataset.h"
#include "data/format/pair_file.h"
#include "data/format/token_file.h"
#include "data/pair_set.h"
#include "data/prepare/token_text.h"
#include "data/token_set.h"

namespace thimble {
namespace {

void nothing(const std::string&) {}

// The record's parts as numbers.
std::vector<std::vector<int32_t>> read(const Dataset& data, Split split, int64_t index) {
  std::vector<std::vector<int32_t>> numbers;
  std::vector<RecordPart> parts;
  for (size_t f = 0; f < data.info().fields.size(); ++f) {
    numbers.emplace_back(static_cast<size_t>(data.length(split, index, f)));
  }
  for (auto& field : numbers) {
    parts.push_back({reinterpret_cast<std::byte*>(field.data()), 4, 4, std::ssize(field)});
  }
  data.read(split, index, parts);
  return numbers;
}

class TextSets : public testing::Test {
 protected:
  DataRequest request(int64_t length = 4) {
    return {.folder = folder_.path(),
            .wanted = {{.name = "tokens", .dtype = DType::i32, .shape = {length}}}};
  }
  std::unique_ptr<Dataset> tokens(int64_t length = 4) {
    return open_dataset("tokens", request(length));
  }
  void make(TokenOptions options) {
    options.out = folder_.path();
    options.say = nothing;
    make_tokens(options);
  }
  PairOptions pair_options() {
    spill(folder_ / "a.de", "Ein Haus.\nZwei Hunde\n\nein Haus und ein Hund und so\nHaus\nHund\n");
    spill(folder_ / "a.en", "A house.\nTwo dogs\n\na house\na house\na dog");  // no newline
    PairOptions options = {.out = folder_ / "set", .train = {folder_ / "a.de", folder_ / "a.en"}};
    options.valid_every = 2;
    options.ratio = 2;
    options.say = nothing;
    return options;
  }

  TemporaryFolder folder_;
};

TEST_F(TextSets, TokensOfGpt2) {
  const std::string text = "The plan's memory: 3 bytes.\nGröße 東京";
  spill(folder_ / "text", text);
  make({.texts = {folder_ / "text"},
        .valid = {folder_ / "text"},
        .kind = TokenKind::gpt2,
        .tokenizer = THIMBLE_TEST_TOKENIZER});
  const auto set = tokens();
  EXPECT_EQ(set->info().fields[0].limit, 400);
  // The questions of sampling, to the folder of tokens or to the tokenizer's own.
  const std::vector<int32_t> numbers = TokenText::read(THIMBLE_TEST_TOKENIZER)->encode(text);
  const auto here = TokenText::read(folder_.path());
  EXPECT_EQ(here->encode(text), numbers);
  EXPECT_EQ(here->decode(numbers), text);
  const std::vector<int32_t> first = read(*set, Split::train, 0)[0];
  EXPECT_TRUE(std::equal(first.begin(), first.end(), numbers.begin()));
}

TEST(VocabularyDigest, TellsVocabulariesAndPreparationsApart) {
  EXPECT_EQ(vocabulary_digest(THIMBLE_TEST_TOKENIZER), "gpt2");
  const TemporaryFolder folder;
  EXPECT_EQ(vocabulary_digest(folder / "nowhere"), "");
  std::set<std::string> digests;
  for (const char* about :
       {R"({"by": "bytes"})", R"({"by": "pieces"})", R"({"by": "pieces", "lower_case": true})",
        R"({"by": "pieces", "language": "de"})"}) {
    spill(folder / "tokens.json", about);
    digests.insert(vocabulary_digest(folder / ""));
  }
  EXPECT_EQ(digests.size(), 4u);
}

TEST_F(TextSets, WindowsOfAStream) {
  spill(folder_ / "text", "abcdefghijklmnopqrst");  // 18 to train on, 2 to test with
  make({.texts = {folder_ / "text"}, .kind = TokenKind::characters});
  EXPECT_TRUE(throws_saying<UserError>([&] { tokens(); }, "too short", "test", "--length"));
  const auto data = tokens(1);
  EXPECT_EQ(data->info().train_count, 17);
  EXPECT_EQ(data->info().test_count, 1);
  EXPECT_EQ(data->info().field("tokens").limit, 20);
  EXPECT_EQ(read(*data, Split::train, 3), (std::vector<std::vector<int32_t>>{{3}, {4}}));
  EXPECT_EQ(read(*data, Split::test, 0), (std::vector<std::vector<int32_t>>{{18}, {19}}));
  EXPECT_EQ(slurp(folder_ / "vocabulary.txt"),
            "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\ns\nt\n");
}

// A token's number is its place. Windows of an epoch follow each other, but for a last one that would
// end behind the text; targets are one further on.
TEST_F(TextSets, WindowsShiftFromEpochToEpoch) {
  spill(folder_ / "text", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN");  // 36 to train on
  make({.texts = {folder_ / "text"}, .kind = TokenKind::characters});
  std::vector<int32_t> place_of;  // by token: characters are numbered in the order of their codes
  for (int32_t token = 0; token < 40; ++token) {
    place_of.push_back(token < 14 ? 26 + token : token - 14);
  }
  DataRequest asked = request(3);
  OwnSettings own;
  Fields list;
  find_dataset("tokens", "")->fields(own, list);
  for (const Field& field : std::move(list).take()) field.set("on");
  asked.settings.emplace("tokens", own);
  const auto data = open_dataset("tokens", asked);
  ASSERT_EQ(data->info().train_count, 11);
  const auto first_of = [&](int64_t window, uint64_t epoch) {
    std::array<int32_t, 3> tokens{}, targets{};
    const std::array<RecordPart, 2> parts = {
        {{reinterpret_cast<std::byte*>(tokens.data()), 4, 4, 3},
         {reinterpret_cast<std::byte*>(targets.data()), 4, 4, 3}}};
    data->read_in_epoch(Split::train, window, epoch, parts);
    const int32_t first = place_of[static_cast<size_t>(tokens[0])];
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(place_of[static_cast<size_t>(tokens[i])], first + static_cast<int32_t>(i));
      EXPECT_EQ(place_of[static_cast<size_t>(targets[i])], first + static_cast<int32_t>(i) + 1);
    }
    return first;
  };
  std::set<int32_t> shifts;
  for (uint64_t epoch = 0; epoch < 24; ++epoch) {
    const int32_t shift = first_of(0, epoch);
    EXPECT_TRUE(epoch > 0 || shift == 0);
    shifts.insert(shift);
    for (int64_t window = 1; window < 11; ++window) {
      EXPECT_EQ(first_of(window, epoch),
                std::min<int32_t>(shift + 3 * static_cast<int32_t>(window), 32));
    }
  }
  EXPECT_EQ(shifts, (std::set<int32_t>{0, 1, 2}));
}

TEST_F(TextSets, RawFilesOfNanoGpt) {
  const std::vector<uint16_t> numbers = {5, 6, 7, 8, 9, 10, 11, 50256, 1, 2, 3};
  spill(folder_ / "train.bin", {reinterpret_cast<const char*>(numbers.data()), 2 * numbers.size()});
  spill(folder_ / "val.bin", {reinterpret_cast<const char*>(numbers.data()), 2 * 6});
  const auto data = tokens(5);
  EXPECT_EQ(data->info().train_count, 2);
  EXPECT_EQ(data->info().test_count, 1);
  EXPECT_EQ(data->info().field("targets").limit, 50257);
  EXPECT_EQ(read(*data, Split::train, 1),
            (std::vector<std::vector<int32_t>>{{10, 11, 50256, 1, 2}, {11, 50256, 1, 2, 3}}));
}

TEST_F(TextSets, HeadedFilesOfLlmC) {
  for (const int64_t vocabulary : {300, 70'000}) {
    TokenFileWriter writer(folder_ / "x_train_000001.bin", vocabulary, false);
    const std::vector<int32_t> numbers = {
        1, 2, 3, 299, static_cast<int32_t>(vocabulary) - 1, 6, 7, 8, 9, 10, 11, 12};
    writer.write(numbers);
    AtomicFile file(writer.path());
    writer.finish(file);
    file.commit();
    const std::string bytes = slurp(folder_ / "x_train_000001.bin");
    EXPECT_EQ(bytes.size(), 1024u + numbers.size() * (vocabulary > 65536 ? 4 : 2));
    int32_t header[3];
    std::memcpy(header, bytes.data(), sizeof(header));
    EXPECT_EQ(header[0], vocabulary > 65536 ? 20240801 : 20240520);
    EXPECT_EQ(header[1], vocabulary > 65536 ? 7 : 1);
    EXPECT_EQ(header[2], 12);
    std::filesystem::copy_file(folder_ / "x_train_000001.bin", folder_ / "x_val_000000.bin",
                               std::filesystem::copy_options::overwrite_existing);
    const auto data = tokens(5);
    EXPECT_EQ(data->info().train_count, 2);
    EXPECT_EQ(read(*data, Split::test, 0)[0],
              (std::vector<int32_t>{1, 2, 3, 299, static_cast<int32_t>(vocabulary) - 1}));
    spill(folder_ / "x_train_000001.bin", std::string_view(bytes).substr(0, bytes.size() - 1));
    EXPECT_TRUE(throws_saying<UserError>([&] { tokens(5); }, "x_train_000001.bin", "truncated",
                                         "12 tokens"));
    // Cut in its header it is no raw file of whatever the header says.
    spill(folder_ / "x_train_000001.bin", std::string_view(bytes).substr(0, 500));
    EXPECT_TRUE(
        throws_saying<UserError>([&] { tokens(5); }, "x_train_000001.bin", "truncated", "500"));
  }
}

TEST_F(TextSets, TokensMustBeInTheVocabulary) {
  spill(folder_ / "train.bin", std::string(41, 'x'));
  EXPECT_TRUE(throws_saying<UserError>([&] { tokens(); }, "truncated", "41 bytes"));
  spill(folder_ / "train.bin",
        std::string_view("\1\0\2\0\3\0\4\0\5\0\6\0\1\0\1\0\7\0\1\0\1\0", 22));
  spill(folder_ / "val.bin", std::string_view("\1\0\2\0\3\0\4\0\5\0\6\0", 12));
  spill(folder_ / "tokens.json", R"({"vocabulary": 7})");
  EXPECT_TRUE(
      throws_saying<UserError>([&] { tokens(); }, "train.bin", "token 8 is 7", "vocabulary of 7"));
  spill(folder_ / "tokens.json", R"({"vocabulary": 8})");
  EXPECT_EQ(tokens()->info().field("tokens").limit, 8);
  spill(folder_ / "tokens.json", R"({"vocabulary": "x"})");
  EXPECT_TRUE(throws_saying<UserError>([&] { tokens(); }, "tokens.json", "damaged"));
}

TEST_F(TextSets, BytesAndPiecesAreTokensToo) {
  spill(folder_ / "text", std::string(32, '\xff'));
  make({.texts = {folder_ / "text"}, .raw = true});
  EXPECT_EQ(slurp(folder_ / "train.bin").size(), 2u * 28);
  EXPECT_EQ(tokens(2)->info().field("tokens").limit, 256);
  // A model may have more tokens than there are bytes.
  const auto text = TokenText::read(folder_.path());
  EXPECT_EQ(text->decode(std::vector<int32_t>{'a', 256 + 'x', 'b'}), "ab");
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { make({.texts = {folder_ / "text"}, .kind = TokenKind::characters}); }, "not UTF-8",
      "line 1"));
  spill(folder_ / "lines", "a b a b\nb c\na a a a a a\n");
  make({.texts = {folder_ / "lines"}, .valid = {folder_ / "lines"}, .kind = TokenKind::pieces});
  const auto data = tokens(6);
  EXPECT_EQ(data->info().field("tokens").limit, 4 + 3);
  EXPECT_EQ(read(*data, Split::train, 0)[0], (std::vector<int32_t>{4, 5, 4, 5, 2, 5}));
  EXPECT_EQ(data->info().test_count, 2);
}

TEST_F(TextSets, WhatIsNoTextIsRefusedAndAMarkOfByteOrderLeftOut) {
  spill(folder_ / "null", std::string_view("ab\nc\0d", 6));
  spill(folder_ / "marked",
        "\xef\xbb\xbf"
        "abcabcabcabc");
  for (const TokenKind kind : {TokenKind::characters, TokenKind::gpt2}) {
    const std::string tokenizer = kind == TokenKind::gpt2 ? THIMBLE_TEST_TOKENIZER : "";
    EXPECT_TRUE(throws_saying<UserError>(
        [&] { make({.texts = {folder_ / "null"}, .kind = kind, .tokenizer = tokenizer}); },
        "null character", "line 2", "byte 5", "--by bytes"));
  }
  EXPECT_FALSE(exists(folder_ / "train.bin"));
  make({.texts = {folder_ / "marked"}, .kind = TokenKind::characters});
  EXPECT_EQ(slurp(folder_ / "vocabulary.txt"), "a\nb\nc\n");
}

TEST_F(TextSets, AllFilesAreMadeOrNone) {
  spill(folder_ / "text", "abcdefghijklmnop");
  spill(folder_ / "empty", "");
  spill(folder_ / "train.bin", "what was there");
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { make({.texts = {folder_ / "text"}, .valid = {folder_ / "empty"}}); }, "val.bin",
      "empty"));
  EXPECT_EQ(slurp(folder_ / "train.bin"), "what was there");
}

TEST_F(TextSets, MergesOfAnotherTimeAreNotUsed) {
  spill(folder_ / "text", "low lower lowest low lower lowest\n");
  const auto numbers = [&] { return TokenText::read(folder_.path())->encode("lower").size(); };
  make({.texts = {folder_ / "text"}, .kind = TokenKind::pieces, .merges = 2});
  EXPECT_GT(numbers(), 1u);
  const std::string merges = slurp(folder_ / "codes.bpe");
  make({.texts = {folder_ / "text"}, .kind = TokenKind::pieces});
  EXPECT_EQ(numbers(), 1u);
  EXPECT_EQ(slurp(folder_ / "codes.bpe"), merges);  // it may be somebody's
  const std::string digest = vocabulary_digest(folder_.path());
  std::filesystem::remove(folder_ / "codes.bpe");
  EXPECT_EQ(vocabulary_digest(folder_.path()), digest);
}

TEST_F(TextSets, PairsAreRecords) {
  PairOptions options = pair_options();
  options.source = {.tokenise = true, .lower_case = true, .language = "de"};
  options.target = {.tokenise = true, .lower_case = true, .language = "en"};
  make_pairs(options);
  const auto data = open_dataset("pairs", {.folder = options.out});
  // Of six, one is empty and one is three times as long as its translation; every second is kept back.
  EXPECT_EQ(data->info().train_count, 2);
  EXPECT_EQ(data->info().test_count, 2);
  const PairSet set = read_pair_set(options.out);
  EXPECT_EQ(set.digest, data->info().vocabulary_sha256);
  // "haus" and "a house", then "ein haus ." and "a house .": shorter ones come first.
  const auto record = read(*data, Split::train, 1);
  EXPECT_EQ(record[0].back(), 2);
  EXPECT_EQ(record[1], std::vector<int32_t>{4});
  EXPECT_EQ(record[2].front(), 1);
  EXPECT_EQ(record[3].back(), 2);
  EXPECT_EQ(set.source.text(set.source_pieces.decode(record[0])), "ein haus.");
  EXPECT_EQ(set.target.text(set.target_pieces.decode(record[3])), "a house.");
  EXPECT_TRUE(std::equal(record[2].begin() + 1, record[2].end(), record[3].begin()));
  EXPECT_EQ(data->info().field("targets").pad, -1);
}

TEST_F(TextSets, PairsThatAreNone) {
  PairOptions options = pair_options();
  spill(folder_ / "short.en", "A house.\n");
  options.train.target = folder_ / "short.en";
  EXPECT_TRUE(throws_saying<UserError>([&] { make_pairs(options); }, "a.de' has 6 lines",
                                       "short.en' has 1"));
  spill(folder_ / "bad.en", "A\nb\nc\n\xff\ne\nf\n");
  options.train.target = folder_ / "bad.en";
  EXPECT_TRUE(throws_saying<UserError>([&] { make_pairs(options); }, "bad.en", "line 4"));
  spill(folder_ / "empty.en", "\n\n\n\n\n\n");
  options.train.target = folder_ / "empty.en";
  EXPECT_TRUE(throws_saying<UserError>([&] { make_pairs(options); }, "not one pair"));
  EXPECT_FALSE(std::filesystem::exists(options.out));
  spill(folder_ / "a.tsv", "Ein Haus\tA house\nohne\n");
  options.train = {folder_ / "a.tsv", ""};
  EXPECT_TRUE(
      throws_saying<UserError>([&] { make_pairs(options); }, "a.tsv", "line 2", "column 2"));
}

TEST_F(TextSets, PairFilesThatAreDamaged) {
  const PairOptions options = pair_options();
  make_pairs(options);
  const std::string path = options.out + "/train.pairs", whole = slurp(path);
  const auto opened = [&](const std::string& bytes) {
    spill(path, bytes);
    return message_of<UserError>([&] { open_dataset("pairs", {.folder = options.out}); });
  };
  EXPECT_EQ(opened(whole), "");
  EXPECT_NE(opened(whole.substr(0, whole.size() - 1)).find("truncated"), std::string::npos);
  EXPECT_NE(opened(whole.substr(0, 20)).find("no file of sentence pairs"), std::string::npos);
  std::string changed = whole;
  changed[changed.size() - 1] = '\x7f';  // the last token
  EXPECT_NE(opened(changed).find("beyond its vocabulary"), std::string::npos);
  changed = whole;
  changed[72] = 1;  // the first sentence's beginning
  EXPECT_NE(opened(changed).find("do not follow"), std::string::npos);
  changed = whole;
  changed[50] ^= 1;  // of another vocabulary
  EXPECT_NE(opened(changed).find("different vocabularies"), std::string::npos);
}

// Translations of a net that was trained on them could not be read.
TEST_F(TextSets, PairsBesideVocabulariesOfOthers) {
  const PairOptions options = pair_options();
  make_pairs(options);
  const std::string path = options.out + "/target.dict", whole = slurp(path);
  const auto opened = [&] {
    return message_of<UserError>([&] { open_dataset("pairs", {.folder = options.out}); });
  };
  spill(path, whole + "Maus 1\n");
  EXPECT_NE(opened().find("not those that its sentence pairs were made with"), std::string::npos);
  spill(path, whole);
  EXPECT_EQ(opened(), "");
  std::filesystem::remove(options.out + "/pairs.json");  // files of pairs alone
  spill(path, whole + "Maus 1\n");
  EXPECT_EQ(opened(), "");
}

TEST_F(TextSets, StreamsNameTheirVocabulary) {
  const auto digest = [&] { return tokens(2)->info().vocabulary_sha256; };
  spill(folder_ / "text", "abcabcabcabcabcabcabcabc");
  make({.texts = {folder_ / "text"}, .kind = TokenKind::characters});
  const std::string abc = digest();
  EXPECT_EQ(abc.size(), 64u);
  spill(folder_ / "text", "abdabdabdabdabdabdabdabd");
  make({.texts = {folder_ / "text"}, .kind = TokenKind::characters});
  EXPECT_NE(digest(), abc);
  spill(folder_ / "text", "cbacbacbacbacbacbacbacba");
  make({.texts = {folder_ / "text"}, .kind = TokenKind::characters});
  EXPECT_EQ(digest(), abc) << "another text of the same characters";
  spill(folder_ / "tokens.json", R"({"vocabulary": 8})");
  EXPECT_EQ(digest(), "") << "by whatever others made them";
}

// Every second pair of the tags of IWSLT's files is text.
TEST_F(TextSets, TagsOfTalksAreLeftOut) {
  for (const char* language : {"de", "en"}) {
    spill(
        folder_ / (std::string("train.tags.de-en.") + language),
        "<url>http://x</url>\n<title>One two</title>\n three four \n<keywords>x</keywords>\n five "
        "six\n");
  }
  PairOptions options = pair_options();
  options.train = {folder_ / "train.tags.de-en.de", folder_ / "train.tags.de-en.en"};
  make_pairs(options);
  EXPECT_EQ(PairFile(options.out + "/train.pairs").count() +
                PairFile(options.out + "/valid.pairs").count(),
            3);
  EXPECT_EQ(read_pair_set(options.out).source_pieces.number_of("<title>One"), kUnknownToken);
  // Of XML, what is in segments; half of one would be lost without a word.
  const std::string xml = "<doc>\n<seg id=\"1\"> one two </seg>\n<seg id=\"2\">three four</seg>\n";
  spill(folder_ / "a.xml", xml + "</doc>\n");
  options.train = {folder_ / "a.xml", folder_ / "a.xml"};
  make_pairs(options);
  EXPECT_NE(read_pair_set(options.out).source_pieces.number_of("two"), kUnknownToken);
  spill(folder_ / "a.xml", xml + "<seg id=\"3\">five\nsix</seg>\n");
  EXPECT_TRUE(
      throws_saying<UserError>([&] { make_pairs(options); }, "a.xml", "line 4", "one line"));
}

}  // namespace
}  // namespace thimble
