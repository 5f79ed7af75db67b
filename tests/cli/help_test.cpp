// Help, completion and pages of man come from the list of commands; mistakes are answered with the right word.
#include <sstream>

#include "support/run_thimble.h"

namespace thimble {
namespace {

void expect_says(const std::vector<std::string>& words, const std::string& sentence, int code = 2) {
  const Outcome outcome = thimble_says(words);
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
}

TEST(Help, OfACommandIsThatOfItsFlag) {
  EXPECT_EQ(thimble_says({"help"}).out, thimble_says({"--help"}).out);
  for (const char* command : {"plan", "train", "list"}) {
    const Outcome help = thimble_says({"help", command});
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_EQ(help.out, thimble_says({command, "--help"}).out);
  }
  EXPECT_EQ(thimble_says({"help", "data", "get"}).out, thimble_says({"data", "get", "--help"}).out);
  expect_says({"help", "plna"}, "there is no command 'plna'");
  expect_says({"help", "plna"}, "the nearest is 'plan'");
}

TEST(Help, IsWrappedToTheTerminal) {
  setenv("COLUMNS", "80", 1);
  const Outcome narrow = thimble_says({"plan", "--help"});
  const Outcome first = thimble_says({"--help"});
  unsetenv("COLUMNS");
  for (const std::string& text : {narrow.out, first.out}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
  const Outcome piped = thimble_says({"plan", "--help"});
  std::string joined[2];
  for (const char c : narrow.out)
    joined[0] += std::isspace(static_cast<unsigned char>(c)) ? "" : std::string(1, c);
  for (const char c : piped.out)
    joined[1] += std::isspace(static_cast<unsigned char>(c)) ? "" : std::string(1, c);
  EXPECT_EQ(joined[0], joined[1]);  // the same words
}

TEST(Help, NamesTheNearest) {
  expect_says({"plan", "gpt2", "--device", "null"}, "the nearest is 'gpt2-124m'");
  expect_says({"plan", "restnet-50"}, "the nearest is 'resnet-50'");
  expect_says({"plan", "mlp", "--optimizer", "adamW"}, "the nearest is 'adamw'");
  expect_says({"plan", "mlp", "--planner", "optmal"}, "the nearest is 'optimal'");
  expect_says({"tran", "mlp"}, "the nearest is 'train'");
  expect_says({"plan", "mlp", "--device", "gpu"}, "there is no device 'gpu'; known: ");
}

TEST(Help, SizesWithoutTheirBAreBinaryAndSayIt) {
  const auto arena = [](const char* size) {
    const Outcome outcome = thimble_says(
        {"plan", "mlp", "--batch", "50", "--memory", size, "--device", "null", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::pair(outcome.json()["arena_bytes"].get<int64_t>(), outcome.err);
  };
  const auto [bytes, said] = arena("8G");
  EXPECT_EQ(bytes, arena("8GiB").first);
  EXPECT_NE(said.find("--memory 8G is taken as 8GiB, 8589934592 bytes"), std::string::npos) << said;
  EXPECT_NE(arena("100M").second.find("104857600 bytes"), std::string::npos);
  EXPECT_EQ(arena("100MB").second.find("is taken as"), std::string::npos);
}

TEST(Help, CompletionKnowsEveryCommandAndFlag) {
  const TemporaryFolder folder;
  const Outcome script = thimble_says({"completion", "bash"});
  ASSERT_EQ(script.code, 0) << script.err;
  spill(folder / "thimble.bash", script.out);
  const auto completed = [&](const std::string& words, int at) {
    const std::string command = fmt::format(
        "bash -c 'source {}; COMP_WORDS=({}); COMP_CWORD={}; _thimble; echo ${{COMPREPLY[*]}}' >{}",
        folder / "thimble.bash", words, at, folder / "answer");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return slurp(folder / "answer");
  };
  EXPECT_EQ(completed("thimble pl", 1), "plan\n");
  EXPECT_EQ(completed("thimble plan wrn-28-2 --microbatch-", 3), "--microbatch-tokens\n");
  EXPECT_EQ(completed("thimble data g", 2), "get\n");
  for (const char* shell : {"zsh", "fish"}) {
    const Outcome other = thimble_says({"completion", shell});
    EXPECT_EQ(other.code, 0);
    EXPECT_NE(other.out.find("microbatch-tokens"), std::string::npos);
  }
  expect_says({"completion", "bahs"}, "the nearest is 'bash'");
}

TEST(Help, PagesOfManHaveEveryFlag) {
  const Outcome page = thimble_says({"man", "plan"});
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_TRUE(page.out.starts_with(".TH THIMBLE\\-PLAN 1 ")) << page.out.substr(0, 80);
  for (const char* flag : {"\\-\\-memory", "\\-\\-explain", "\\-\\-json", "\\-\\-batch"}) {
    EXPECT_NE(page.out.find(std::string(".B ") + flag), std::string::npos) << flag;
  }
  const TemporaryFolder folder;
  ASSERT_EQ(thimble_says({"man", "--all", folder / "man"}).code, 0);
  EXPECT_EQ(slurp(folder / "man/thimble-plan.1"), page.out);
  EXPECT_NE(slurp(folder / "man/thimble-data-get.1"), "");
  const Outcome first = thimble_says({"man"});
  EXPECT_NE(first.out.find(".B train\n"), std::string::npos);
}

TEST(Help, NoNameOfAListRunsIntoItsSummary) {
  const Outcome list = thimble_says({"list"});
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_NE(list.out.find("lightconv-iwslt\n"), std::string::npos) << list.out.substr(0, 300);
}

TEST(Help, AQuietRunSaysItsResultAlone) {
  const TemporaryFolder folder;
  const auto train = [&](const char* out, const char* flag) {
    return thimble_says({"train", "mlp", "--data", "digits", "--batch", "50", "--steps", "2",
                         "--out", folder / out, flag});
  };
  const Outcome quiet = train("quiet", "--quiet"), loud = train("loud", "--overwrite");
  ASSERT_EQ(quiet.code, 0) << quiet.err;
  EXPECT_EQ(quiet.err, "");
  EXPECT_NE(quiet.out.find("weights sha256"), std::string::npos);
  EXPECT_NE(loud.err, "");
}

// The output of a terminal of so many columns, as `script` records it.
std::string on_terminal(int columns, const std::string& words) {
  const TemporaryFolder folder;
  const std::string command = fmt::format(
      "cd {0} && THIMBLE_CALIBRATE=off script -qec 'stty cols {1}; {2} {3}' {0}/shown >/dev/null",
      folder.path(), columns, THIMBLE_PROGRAM, words);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return slurp(folder / "shown");
}

// A longer line would wrap, and then not redraw in place.
TEST(Help, TheLiveLineFitsTheTerminalAndHasUnits) {
  for (const int columns : {80, 40}) {
    const std::string shown =
        on_terminal(columns, "train mlp --data digits --batch 50 --steps 60 --no-eval --out run");
    size_t lines = 0;
    for (size_t at = 0; (at = shown.find("\033[K", at)) != std::string::npos;) {
      at += 3;
      const std::string line = shown.substr(at, shown.find_first_of("\r\n\033", at) - at);
      EXPECT_LT(line.size(), static_cast<size_t>(columns)) << line;
      const bool live = line.find("/60  loss ") != std::string::npos && !line.starts_with("epoch");
      if (!live || columns < 80) continue;
      ++lines;
      for (const char* unit : {" rows/s", "s left", "arena ", "iB"}) {
        EXPECT_NE(line.find(unit), std::string::npos) << line;
      }
    }
    EXPECT_TRUE(columns < 80 || lines > 0) << shown;
  }
}

// 60 steps of 2 rows of 16 tokens, wherever they are said.
TEST(Help, SequencesAreCountedInTokens) {
  const TemporaryFolder folder;
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "train",   "gpt",    "--layers",  "1",           "--heads", "2",           "--width",
        "16",      "--data", "noise",     "--length",    "16",      "--batch",     "2",
        "--steps", "60",     "--no-eval", "--overwrite", "--out",   folder / "run"};
    words.insert(words.end(), more.begin(), more.end());
    return thimble_says(words);
  };
  const Outcome plain = train({});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_NE(plain.err.find(" tok/s"), std::string::npos) << plain.err;
  EXPECT_EQ(plain.err.find(" rows/s"), std::string::npos) << plain.err;
  EXPECT_NE(plain.out.find(" tokens a second"), std::string::npos) << plain.out;
  const nlohmann::json json = nlohmann::json::parse(train({"--json", "--times"}).out);
  double seconds = 0;
  for (const nlohmann::json& ms : json["times_ms"]) seconds += ms.get<double>() / 1000;
  EXPECT_NEAR(json["tokens_per_second"].get<double>() * seconds, 60 * 2 * 16, 1e-6);
}

TEST(Help, CommandsOfThePythonPackageSayWhereTheyAre) {
  expect_says({"finetune", "folder", "--data", "chat.jsonl"}, "pip install thimble[finetune]");
  expect_says({"chat", "run", "--once", "?"}, "`thimble chat` is a command of the Python package");
  expect_says({"data", "show", "chat.jsonl", "--model", "folder"}, "`thimble data show`");
}

TEST(Help, HelpAndListsFitATerminal) {
  for (const char* words :
       {"--help", "help train", "list models", "list flags", "data get --help"}) {
    std::istringstream lines(on_terminal(80, words));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("Script ")) continue;  // script's own first and last line
      const bool one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
      EXPECT_TRUE(one_word || line.size() <= 81) << line;  // with its carriage return
    }
  }
}

}  // namespace
}  // namespace thimble
