// Files given where others belong: whatever they are, a sentence and no hang.
#include <sys/stat.h>

#include "support/run_thimble.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

class Files : public testing::Test {
 protected:
  // Every command that reads a file of the user's choice.
  std::vector<Words> doors(const std::string& path) const {
    return {{"verify", path},
            {"plan", "mlp", "--costs", path},
            {"train", "mlp", "--steps", "1", "--threads", "1", "--out", folder_ / "run",
             "--weights", path}};
  }
  template <class... Parts>
  void expect_refused_everywhere(const std::string& path, const Parts&... parts) const {
    for (const Words& words : doors(path)) {
      SCOPED_TRACE(words[0]);
      expect_mistake(thimble_says(words), parts...);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Files, ThatAreNone) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("circle", folder_ / "circle");
  expect_refused_everywhere(folder_ / "pipe", "device or pipe");
  expect_refused_everywhere("/dev/zero", "device or pipe");
  expect_refused_everywhere(folder_.path(), "is a folder");
  expect_refused_everywhere(folder_ / "circle", "go in a circle");
  expect_refused_everywhere(folder_ / std::string(300, 'x'), "too long");
}

// Control codes of a terminal come out of names as text, in sentences and in tables.
TEST_F(Files, NamesThatATerminalWouldObey) {
  const std::string net = folder_ / "net.json";
  spill(net, R"({"thimble_network": 1, "name": "net", "made_by": "hand", "batch": 4,
    "weights": "none.safetensors", "buffers": [], "constants": [], "outputs": [],
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["rows", 8], "target": false},
               {"name": "y", "dtype": "f32", "shape": ["rows", 2], "target": true}],
    "parameters": [{"name": "w\u001b[31m", "shape": [2, 8], "trained": true, "also": [], "group": 0}],
    "groups": [{"rate": 1.0, "decay": 0.0}], "loss": "%4", "nodes": [
    {"op": "linear", "in": ["x", "w\u001b[31m"], "out": ["%1"], "attrs": {}, "shapes": [["rows", 2]], "at": ""},
    {"op": "sub", "in": ["%1", "y"], "out": ["%2"], "attrs": {}, "shapes": [["rows", 2]], "at": ""},
    {"op": "smooth_l1", "in": ["%2"], "out": ["%3"], "attrs": {"beta": 1.0}, "shapes": [["rows", 2]], "at": ""},
    {"op": "mean", "in": ["%3"], "out": ["%4"], "attrs": {"axes": [0, 1], "keep": false}, "shapes": [[]], "at": ""}]})");
  const std::string merges = folder_ / "codes";
  spill(merges, "#version: 0.2\x1b[2J\n");
  const Words commands[] = {
      {"plan", net, "--explain"},
      {"plan", net, "--keep", "\x1b]0;title\a"},
      {"plan", "\x1b[2J"},
      {"verify", folder_ / "\x1b[2J\nnone"},
      {"data", "bpe", "apply", merges, "--codes", merges, "--out", folder_ / "out"},
  };
  for (const Words& words : commands) {
    const Outcome outcome = thimble_says(words);
    for (const char c : {'\x1b', '\a', '\r'}) {
      EXPECT_EQ((outcome.out + outcome.err).find(c), std::string::npos) << words[1];
    }
  }
  const std::string table = thimble_says(commands[0]).out;
  EXPECT_NE(table.find("w\\x1b[31m"), std::string::npos) << table;
}

TEST_F(Files, RecipesThatAreNone) {
  ASSERT_EQ(mkfifo((folder_ / "pipe.toml").c_str(), 0600), 0);
  std::filesystem::create_symlink("circle.toml", folder_ / "circle.toml");
  std::filesystem::create_directory(folder_ / "folder.toml");
  expect_mistake(thimble_says({"plan", folder_ / "pipe.toml"}), "device or pipe");
  expect_mistake(thimble_says({"plan", folder_ / "circle.toml"}), "go in a circle");
  expect_mistake(thimble_says({"plan", folder_ / "folder.toml"}), "is a folder");
  expect_mistake(thimble_says({"plan", folder_ / std::string(300, 'x') + ".toml"}), "too long");
  spill(folder_ / "bytes.toml", "model = \"\xff\xfe\"\n");
  expect_mistake(thimble_says({"plan", folder_ / "bytes.toml"}), "bytes.toml", "line 1");
}

TEST_F(Files, NestedBeyondAnyStack) {
  const std::string path = folder_ / "deep";
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    spill(path, deep);
    expect_mistake(thimble_says({"verify", path}), "100 deep");
    expect_mistake(thimble_says({"plan", "mlp", "--costs", path}), "100 deep", "calibrate");
  }
  std::string dots;
  for (int i = 0; i < 500'000; ++i) dots += "a.";
  // As a key, as a table's name, behind a text that ends in four quotes.
  for (const std::string& text :
       {dots + "b = 1\n", "[" + dots + "b]\n", "x = [\"\"\"a\"\"\"\", {" + dots + "b = 1}]\n"}) {
    spill(folder_ / "r.toml", "model = \"mlp\"\n" + text);
    expect_mistake(thimble_says({"plan", folder_ / "r.toml"}), "dots");
  }
  // In texts and comments they are nobody's business.
  spill(folder_ / "r.toml",
        "model = \"mlp\"\n# " + dots + "\nkeep = \"*\"  # " + dots.substr(9) + "\n");
  EXPECT_EQ(thimble_says({"plan", folder_ / "r.toml"}).code, 2);  // larger than a recipe may be
  spill(folder_ / "r.toml", "model = \"mlp\"\n# " + dots.substr(0, 500'000) + "\n");
  EXPECT_EQ(thimble_says({"plan", folder_ / "r.toml"}).code, 0);
}

TEST_F(Files, LargerThanTheyCanBe) {
  for (const char* name : {"huge", "huge.toml"}) {
    spill(folder_ / name, "");
    std::error_code error;
    std::filesystem::resize_file(folder_ / name, 10'000'000'000'000, error);
    if (error) std::filesystem::resize_file(folder_ / name, 10'000'000'000);
  }
  expect_mistake(thimble_says({"verify", folder_ / "huge"}), "bytes", "at most");
  expect_mistake(thimble_says({"plan", "mlp", "--costs", folder_ / "huge"}), "bytes", "at most");
  expect_mistake(thimble_says({"plan", folder_ / "huge.toml"}), "bytes", "at most");
}

TEST_F(Files, TimesThatNoKernelTakes) {
  for (const char* seconds : {"1e308", "1e-320", "1e7"}) {
    spill(folder_ / "costs",
          fmt::format(R"({{"format":"thimble-costs-1","machines":{{"m":{{"k by own":)"
                      R"({{"seconds":{},"modelled":1,"date":"2026-11-15"}}}}}}}})",
                      seconds));
    expect_mistake(thimble_says({"plan", "mlp", "--costs", folder_ / "costs"}), "cannot take");
  }
}

TEST_F(Files, NamesOfAnyBytes) {
  const std::string out = folder_ / "n\xff";
  const Outcome outcome = thimble_says(
      {"train", "mlp", "--steps", "1", "--threads", "1", "--no-eval", "--json", "--out", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.json()["checkpoint"].get<std::string>().find("n\xef\xbf\xbd/step"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(out + "/latest/state.json"));
  expect_mistake(thimble_says({"plan", "m\xff"}), "there is no model");
  expect_mistake(thimble_says({"calibrate", "mlp", "--costs", folder_ / std::string(300, 'x')}),
                 "too long");
}

}  // namespace
}  // namespace thimble
