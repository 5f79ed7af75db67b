// From raw text to BLEU: a small DynamicConv learns 500 sentence pairs by heart.
#include <random>

#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

// Sentences that differ in every part, and what they are in English, the verb in another place.
void make_text(const std::string& de, const std::string& en) {
  const char* subjects[][2] = {{"der Mann", "the man"},       {"die Frau", "the woman"},
                               {"ein Kind", "a child"},       {"der alte Hund", "the old dog"},
                               {"meine Katze", "my cat"},     {"ihr Bruder", "her brother"},
                               {"der Lehrer", "the teacher"}, {"niemand", "nobody"}};
  const char* verbs[][2] = {{"hat gesehen", "has seen"},  {"will kaufen", "wants to buy"},
                            {"kann finden", "can find"},  {"soll tragen", "shall carry"},
                            {"wird malen", "will paint"}, {"muss suchen", "must look for"}};
  const char* objects[][2] = {
      {"ein rotes Haus", "a red house"},  {"drei kleine Bücher", "three small books"},
      {"den Schlüssel", "the key"},       {"viele Äpfel", "many apples"},
      {"das große Boot", "the big boat"}, {"seine Schuhe", "his shoes"},
      {"einen Stuhl", "a chair"}};
  const char* places[][2] = {{"in der Stadt", "in town"},
                             {"am See", "by the lake"},
                             {"zu Hause", "at home"},
                             {"heute", "today"},
                             {"im Garten", "in the garden"}};
  std::mt19937 random(3);
  std::string german, english;
  for (int i = 0; i < 500; ++i) {
    const auto& s = subjects[random() % 8];
    const auto& v = verbs[random() % 6];
    const auto& o = objects[random() % 7];
    const auto& p = places[random() % 5];
    const std::string verb = v[0];
    const size_t space = verb.find(' ');
    german += std::string(s[0]) + " " + verb.substr(0, space) + " " + p[0] + " " + o[0] + " " +
              verb.substr(space + 1) + ".\n";
    english += std::string(s[1]) + " " + v[1] + " " + o[1] + " " + p[1] + ".\n";
  }
  spill(de, german);
  spill(en, english);
}

TEST(Translation, FiveHundredPairsAreLearntByHeart) {
  const TemporaryFolder folder;
  make_text(folder / "a.de", folder / "a.en");
  const Outcome made =
      thimble_says({"data", "pairs", "--train", folder / "a.de", folder / "a.en", "--valid",
                    folder / "a.de", folder / "a.en", "--from", "de", "--to", "en", "--tokenise",
                    "--merges", "100", "--ratio", "0", "--out", folder / "set"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Outcome trained =
      thimble_says({"train",
                    "dynamicconv:width=64,inner=128,heads=4,encoder=2,decoder=2",
                    "--data",
                    "pairs",
                    "--data-dir",
                    folder / "set",
                    "--tokens",
                    "1000",
                    "--steps",
                    "600",
                    "--optimizer",
                    "adam",
                    "--lr",
                    "3e-3",
                    "--warmup",
                    "100 steps",
                    "--schedule",
                    "inverse-sqrt",
                    "--out",
                    folder / "run",
                    "--save-every",
                    "20 steps",
                    "--keep-checkpoints",
                    "5",
                    "--eval-every",
                    "0",
                    "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.json()["measured_arena_bytes"], trained.json()["arena_bytes"]);
  const Outcome translated =
      thimble_says({"translate", folder / "run", "--average", "5", "--input", folder / "a.de",
                    "--output", folder / "out", "--reference", folder / "a.en", "--json"});
  ASSERT_EQ(translated.code, 0) << translated.err;
  EXPECT_GT(translated.json()["bleu"].get<double>(), 90);
}

}  // namespace
}  // namespace thimble
