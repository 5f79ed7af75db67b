// thimble data: sets fetched, made of raw text, and judged.
#include "support/http_server.h"
#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

// A published set whose files may be anything: their sums are not known.
class Get : public testing::Test {
 protected:
  Words words(const std::string& url) const {
    return {"data", "get", "tatoeba", "--url", url, "--out", folder_ / "set"};
  }
  // A zip file of one stored file, "deu.txt".
  static std::string zipped() {
    return std::string(
        "PK\x03\x04\x0a\x00\x00\x00\x00\x00\x00\x00\x21\x00\x07\xb7\xea\x18\x08\x00\x00\x00\x08\x00"
        "\x00\x00\x07\x00\x00\x00"
        "deu.txt"
        "Hi\tHallo"
        "PK\x01\x02\x0a\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x21\x00\x07\xb7\xea\x18\x08\x00\x00\x00"
        "\x08\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        "deu.txt"
        "PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00\x35\x00\x00\x00\x2d\x00\x00\x00\x00\x00",
        30 + 7 + 8 + 46 + 7 + 22);
  }
  TemporaryFolder folder_;
};

TEST_F(Get, FetchesChecksAndGoesOn) {
  const std::string file = folder_ / "set/input.txt";
  std::string text(1'115'394, 'x');  // of the right size, and yet not it
  HttpServer server({{"input.txt", text}});
  const Words get = {"data",       "get",   "tinyshakespeare", "--url",
                     server.url(), "--out", folder_ / "set"};
  server.hang_up_after(300'000);
  expect_mistake(thimble_says(get), "cannot fetch", server.url(), "repeat the command", "--from");
  EXPECT_EQ(slurp(file + ".part").size(), 300'000u);
  // It goes on where it was cut off, and what arrives is judged by its sum.
  expect_mistake(thimble_says(get), "not what is wanted", "sha256");
  EXPECT_EQ(server.asked(), (std::vector<size_t>{0, 300'000}));
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Get, OfflineIsASentence) {
  const std::string said = thimble_says(words("http://127.0.0.1:9")).err;
  EXPECT_TRUE(said.starts_with("thimble: cannot fetch")) << said;
  expect_mistake(thimble_says(words("http://127.0.0.1:9")), "cannot fetch", "without a network",
                 "--from");
  HttpServer server({});
  expect_mistake(thimble_says(words(server.url())), "cannot fetch", "404");
  const RunSettings no_programs = {.environment = {"PATH=/nowhere"}};
  expect_mistake(thimble_says(words(server.url()), no_programs), "no `curl` program", "--from");
  expect_mistake(thimble_says({"data", "get", "imagenet"}), "known: cifar10", "tinyshakespeare");
}

TEST_F(Get, SumsThatNobodyStatesAreRemembered) {
  const Outcome first = [&] {
    HttpServer server({{"deu-eng.zip", zipped()}});
    return thimble_says(words(server.url()));
  }();
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(slurp(folder_ / "set/deu.txt"), "Hi\tHallo");
  EXPECT_NE(slurp(folder_ / "set/SHA256SUMS").find("  deu-eng.zip\n"), std::string::npos);
  EXPECT_NE(first.out.find("next: thimble data pairs"), std::string::npos);
  // There already: nothing is fetched.
  const Outcome again = thimble_says(words("http://127.0.0.1:9"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("is there already"), std::string::npos);
  // A damaged one is fetched again, and has to be the one that was first.
  spill(folder_ / "set/deu-eng.zip", "cut");
  HttpServer other({{"deu-eng.zip", zipped() + "more"}});
  expect_mistake(thimble_says(words(other.url())), "not what is wanted", "published anew",
                 "set/SHA256SUMS");
}

TEST_F(Get, APageInItsPlaceIsForgotten) {
  {
    HttpServer portal({{"deu-eng.zip", std::string("<html>Please log in</html>")}});
    expect_mistake(thimble_says(words(portal.url())), "cannot be unpacked");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "set/SHA256SUMS"));
  HttpServer server({{"deu-eng.zip", zipped()}});
  const Outcome outcome = thimble_says(words(server.url() + "/"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(slurp(folder_ / "set/deu.txt"), "Hi\tHallo");
  expect_mistake(thimble_says(words(server.url()) + Words{"--from", folder_ / "set"}), "excludes");
}

TEST_F(Get, AServerWithoutRangesIsAskedForAll) {
  HttpServer server({{"deu-eng.zip", zipped()}}, false);
  std::filesystem::create_directory(folder_ / "set");
  spill(folder_ / "set/deu-eng.zip.part", "PK");
  const Outcome outcome = thimble_says(words(server.url()));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(slurp(folder_ / "set/deu.txt"), "Hi\tHallo");
}

TEST_F(Get, TakesWhatIsOnDisk) {
  spill(folder_ / "deu-eng.zip", zipped());
  for (const std::string& from : {folder_.path(), folder_ / "deu-eng.zip"}) {
    const Outcome outcome = thimble_says(
        {"data", "get", "tatoeba", "--from", from, "--out", folder_ / "set" + from.substr(1, 3)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  expect_mistake(
      thimble_says({"data", "get", "mnist", "--from", folder_.path(), "--out", folder_ / "mnist"}),
      "train-images-idx3-ubyte.gz");
  spill(folder_ / "input.txt", "To be");
  expect_mistake(thimble_says({"data", "get", "tinyshakespeare", "--from", folder_ / "input.txt",
                               "--out", folder_ / "play"}),
                 "5 bytes", "1115394");
}

class Made : public testing::Test {
 protected:
  void SetUp() override {
    std::string de, en;
    for (int i = 0; i < 60; ++i) {
      de += "Der Hund " + std::to_string(i % 7) + " läuft.\n";
      en += "The dog " + std::to_string(i % 7) + " runs.\n";
    }
    spill(folder_ / "a.de", de);
    spill(folder_ / "a.en", en);
  }
  Words pairs() const {
    return {"data", "pairs", "--train",      folder_ / "a.de", folder_ / "a.en", "--from",
            "de",   "--to",  "en",           "--tokenise",     "--lower",        "--merges",
            "20",   "--out", folder_ / "set"};
  }
  TemporaryFolder folder_;
};

TEST_F(Made, Pairs) {
  const Outcome outcome = thimble_says(pairs());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("60 of 60 pairs"), std::string::npos);
  for (const char* name :
       {"train.pairs", "valid.pairs", "source.dict", "target.dict", "codes.bpe", "pairs.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "set/" + name)) << name;
  }
  EXPECT_EQ(slurp(folder_ / "set/codes.bpe").substr(0, 14), "#version: 0.2\n");
  spill(folder_ / "short.en", "one\n");
  Words words = pairs();
  words[4] = folder_ / "short.en";
  expect_mistake(thimble_says(words), "a.de' has 60 lines", "has 1");
}

TEST_F(Made, PiecesLearntAndCut) {
  ASSERT_EQ(thimble_says({"data", "bpe", "learn", folder_ / "a.de", folder_ / "a.en", "--merges",
                          "5", "--out", folder_ / "codes"})
                .code,
            0);
  const Outcome cut = thimble_says({"data", "bpe", "apply", folder_ / "a.en", "--codes",
                                    folder_ / "codes", "--out", folder_ / "cut"});
  ASSERT_EQ(cut.code, 0) << cut.err;
  EXPECT_NE(slurp(folder_ / "cut").find("@@ "), std::string::npos);
  expect_mistake(thimble_says({"data", "bpe", "apply", folder_ / "a.en", "--codes",
                               folder_ / "a.de", "--out", folder_ / "none"}),
                 "a.de", "no file of BPE merges");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

// The files that stood there are there still, all of them.
TEST_F(Made, AFullDiskLosesNothing) {
  const auto contents = [&](const std::string& set) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / set)) {
      files[entry.path().filename()] = slurp(entry.path());
    }
    return files;
  };
  for (const char* kind : {"pairs", "tokens"}) {
    const bool pairs = std::string(kind) == "pairs";
    const Words ask = pairs ? Words{"data",           "pairs", "--train",     folder_ / "a.de",
                                    folder_ / "a.en", "--out", folder_ / kind}
                            : Words{"data",   "tokens", folder_ / "a.en", "--by",
                                    "pieces", "--out",  folder_ / kind};
    ASSERT_EQ(thimble_says(ask).code, 0);
    const auto before = contents(kind);
    const Outcome full = thimble_says(ask + Words{"--merges", "3"}, {.file_limit = 500});
    EXPECT_EQ(full.code, 2);
    EXPECT_NE(full.err.find("the file would grow past the size limit"), std::string::npos)
        << full.err;
    EXPECT_EQ(contents(kind), before) << kind;
  }
}

TEST_F(Made, WordsOfNoLanguage) {
  const std::string note = "by the rules of a language; name it with --to";
  const Words ask = {"data",   "pairs", "--train",    folder_ / "a.de", folder_ / "a.en",
                     "--from", "de",    "--tokenise", "--out",          folder_ / "set"};
  const Outcome without = thimble_says(ask);
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_NE(without.err.find(note), std::string::npos) << without.err;
  EXPECT_EQ(without.err.find("--from"), std::string::npos) << without.err;
  EXPECT_EQ(thimble_says(ask + Words{"--to", "en"}).err.find(note), std::string::npos);
}

TEST_F(Made, NothingToMerge) {
  spill(folder_ / "once", "ab cd\n");
  expect_mistake(thimble_says({"data", "bpe", "learn", folder_ / "once", "--out", folder_ / "c"}),
                 "nothing to merge", "--least");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c"));
}

TEST_F(Made, PairsOfColumns) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "ein Hund\ta dog\n\n";
  spill(folder_ / "tsv", lines);
  const Words ask = {"data",          "pairs", "--train",
                     folder_ / "tsv", "--out", folder_ / "columns",
                     "--valid-every", "5"};
  const Outcome outcome = thimble_says(ask);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("20 of 40 pairs; left out: 20 with an empty line"), std::string::npos)
      << outcome.err;
  expect_mistake(thimble_says(ask + Words{"--ratio", "nan"}), "Value nan not in range 0 to 1000");
}

TEST_F(Made, Bleu) {
  const Outcome same =
      thimble_says({"data", "bleu", folder_ / "a.en", folder_ / "a.en", "--lower"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.out.find("BLEU = 100.00 100.0/100.0/100.0/100.0 (BP = 1.000"), 0u);
  EXPECT_NE(same.out.find("nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:thimble-"),
            std::string::npos);
  EXPECT_LT(thimble_says({"data", "bleu", folder_ / "a.de", folder_ / "a.en", "--json"})
                .json()["bleu"]
                .get<double>(),
            50);
  spill(folder_ / "short", "The dog\n");
  expect_mistake(thimble_says({"data", "bleu", folder_ / "short", folder_ / "a.en"}), "1 lines",
                 "has 60");
}

TEST_F(Made, Tokens) {
  const Outcome outcome = thimble_says(
      {"data", "tokens", folder_ / "a.en", "--by", "characters", "--out", folder_ / "stream"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(slurp(folder_ / "stream/tokens.json"))["by"], "characters");
  spill(folder_ / "bad", "a\nb\xc3\x28\n");
  expect_mistake(thimble_says({"data", "tokens", folder_ / "bad", "--by", "characters", "--out",
                               folder_ / "none"}),
                 "not UTF-8", "line 2");
  expect_mistake(thimble_says({"data", "tokens", folder_ / "a.en", "--merges", "5", "--out",
                               folder_ / "none"}),
                 "--by pieces");
}

}  // namespace
}  // namespace thimble
