// Every line of misspelt.txt is answered by one sentence with the right thing to type.
#include <filesystem>
#include <sstream>

#include "support/run_thimble.h"

namespace thimble {
namespace {

struct Line {
  std::vector<std::string> words;
  std::string answer;
  bool accepted = false;  // and a note says how
};

std::vector<Line> misspelt_lines() {
  std::vector<Line> lines;
  std::istringstream file(slurp(THIMBLE_MISSPELT));
  for (std::string text; std::getline(file, text);) {
    const size_t arrow = text.find(" => ");
    if (text.empty() || text[0] == '#' || arrow == std::string::npos) continue;
    Line line = {
        .words = {}, .answer = text.substr(arrow + 4), .accepted = text.starts_with("ok:")};
    std::istringstream words(text.substr(0, arrow));
    for (std::string word; words >> word;) {
      if (word != "ok:") line.words.push_back(word);
    }
    lines.push_back(line);
  }
  return lines;
}

// Lines of an error, without notes on how the command was read.
int64_t sentences_of(const std::string& said) {
  std::istringstream lines(said);
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) count += !line.starts_with("thimble: note: ");
  return count;
}

TEST(Misspelt, IsAnsweredByOneSentence) {
  const TemporaryFolder folder;
  for (const char* below : {"pics/cat", "recipes", "nets", "llama", "runs/digits"}) {
    std::filesystem::create_directories(folder / below);
  }
  spill(folder / "recipes/digits.toml", "model = \"mlp\"\n");
  for (const char* file :
       {"pics/cat/a.png", "recipes/old.yaml", "nets/vgg.onnx", "llama/config.json"}) {
    spill(folder / file, "{}");
  }
  const std::vector<Line> lines = misspelt_lines();
  ASSERT_GE(lines.size(), 100u);
  for (const Line& line : lines) {
    const Outcome outcome = thimble_says(line.words, {.folder = folder.path()});
    SCOPED_TRACE(fmt::format("thimble {}", fmt::join(line.words, " ")));
    EXPECT_EQ(outcome.code, line.accepted ? 0 : 2) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("thimble: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(line.answer), std::string::npos) << outcome.err << line.answer;
    EXPECT_EQ(outcome.err.find("internal error"), std::string::npos) << outcome.err;
    if (!line.accepted) {
      EXPECT_EQ(sentences_of(outcome.err), 1) << outcome.err;
      EXPECT_EQ(outcome.out, "");
    }
  }
}

// Whole commands among the answers are commands.
TEST(Misspelt, CommandsToTypeAreThere) {
  size_t seen = 0;
  for (const Line& line : misspelt_lines()) {
    const bool whole = line.answer.starts_with("`thimble ") && line.answer.ends_with("`");
    if (!whole || line.answer.find("...") != std::string::npos) continue;
    std::istringstream words(line.answer.substr(9, line.answer.size() - 10));
    std::vector<std::string> typed;
    for (std::string word; words >> word;) typed.push_back(word);
    typed.emplace_back("--help");
    const Outcome outcome = thimble_says(typed);
    EXPECT_EQ(outcome.code, 0) << line.answer << outcome.err;
    ++seen;
  }
  EXPECT_GE(seen, 5u);
}

}  // namespace
}  // namespace thimble
