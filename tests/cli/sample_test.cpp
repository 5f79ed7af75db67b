// thimble sample and thimble export, on a run of a few steps.
#include <algorithm>

#include "support/run_thimble.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

using Words = std::vector<std::string>;

// One run for all tests, on characters beyond ASCII.
class Sample : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    std::string text;
    for (int i = 0; i < 60; ++i) text += "über Stock und Stein\n";
    spill(*folder_ / "text", text);
    ASSERT_EQ(thimble_says({"data", "tokens", "--by", "characters", "--out", *folder_ / "set",
                            *folder_ / "text"})
                  .code,
              0);
    const Outcome trained = train("run", {"--precision", "fp32"});
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome train(const std::string& out, const Words& flags) {
    return thimble_says(Words{"train", "gpt:layers=1,heads=2,width=16,length=21", "--data",
                              "tokens", "--data-dir", path("set"), "--batch", "4", "--steps", "4",
                              "--optimizer", "adamw", "--threads", "1", "--no-eval", "--out",
                              path(out), "--json"} +
                        flags);
  }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static Words ask(const Words& flags) {
    return Words{"sample", path("run"), "--length", "30", "--json"} + flags;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Sample::folder_ = nullptr;

TEST_F(Sample, MakesAsMuchTextAsAskedForFromTheSeed) {
  const Outcome said = thimble_says(ask({"--prompt", "über"}));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.json()["tokens"].size(), 30u);
  EXPECT_EQ(thimble_says(ask({"--prompt", "über"})).json()["tokens"], said.json()["tokens"]);
  EXPECT_NE(thimble_says(ask({"--prompt", "über", "--seed", "2"})).json()["tokens"],
            said.json()["tokens"]);
  const Outcome numbers =
      thimble_says(ask({"--numbers", "--prompt", "3 1,2", "--temperature", "0"}));
  ASSERT_EQ(numbers.code, 0) << numbers.err;
  EXPECT_EQ(numbers.json()["tokens"].size(), 30u);
}

// A cache changes how long it takes, and the bytes.
TEST_F(Sample, WithACacheAndWithoutOne) {
  const Words how = {"--prompt", "über", "--temperature", "0"};
  const Outcome cached = thimble_says(ask(how)),
                whole = thimble_says(ask(how + Words{"--no-cache"}));
  ASSERT_EQ(cached.code, 0) << cached.err;
  EXPECT_EQ(cached.json()["tokens"].size(), 30u);
  EXPECT_EQ(cached.json()["tokens"], whole.json()["tokens"]);
  EXPECT_EQ(cached.json()["cache_bytes"], 2 * 21 * 16 * 4);
  EXPECT_EQ(whole.json()["cache_bytes"], 0);
  expect_mistake(thimble_says(ask({"--prompt", "über", "--context", "22"})),
                 "has 21 learned positions");
  const Outcome none = thimble_says(ask({"--prompt", "über", "--memory", "4KiB"}));
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(none.json()["infeasible"].get<bool>());
  EXPECT_NE(none.err.find("give --memory more, or a shorter --context"), std::string::npos)
      << none.err;
}

TEST_F(Sample, EndsBeforeATextOrAToken) {
  const Words how = {"--prompt", "Stock", "--seed", "3"};
  const nlohmann::json all = thimble_says(ask(how)).json();
  EXPECT_FALSE(all["stopped"].get<bool>());
  const std::string text = all["text"].get<std::string>();
  ASSERT_GT(text.size(), 12u);
  size_t at = 8;
  while ((text[at] & 0x80) != 0) ++at;
  const std::string stop = text.substr(at, 1);
  const nlohmann::json ended =
      thimble_says(ask(how + Words{"--stop", stop, "--stop", "@@"})).json();
  EXPECT_TRUE(ended["stopped"].get<bool>());
  EXPECT_EQ(ended["text"].get<std::string>(), text.substr(0, text.find(stop)));
  const int token = all["tokens"][9].get<int>();
  const nlohmann::json before =
      thimble_says(ask(how + Words{"--stop-token", std::to_string(token)})).json();
  EXPECT_TRUE(before["stopped"].get<bool>());
  EXPECT_LE(before["tokens"].size(), 9u);
  EXPECT_EQ(std::ranges::count(before["tokens"].get<std::vector<int>>(), token), 0);
  const nlohmann::json narrow = thimble_says(ask(how + Words{"--top-p", "0"})).json();
  EXPECT_EQ(narrow["tokens"],
            thimble_says(ask(how + Words{"--temperature", "0"})).json()["tokens"]);
}

TEST_F(Sample, SaysInASentenceWhatItCannotGoOnWith) {
  const auto refuses = [](const Words& words, const std::string& why) {
    const Outcome outcome = thimble_says(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  };
  refuses(ask({"--prompt", "xyz"}), "'x' in the prompt is not in the vocabulary");
  refuses(ask({"--prompt", ""}), "there is nothing to go on with");
  refuses(ask({"--numbers", "--prompt", "1 99"}), "token 99 of the prompt is beyond");
  refuses(ask({"--numbers", "--prompt", "one"}), "is whole numbers");
  refuses(ask({"--numbers"}), "give them with --prompt");
  refuses(ask({"--temperature", "nan"}), "--temperature: Value nan not in range 0 to 1000");
  refuses(ask({"--top-p", "1.5"}), "--top-p: Value 1.5 not in range 0 to 1");
  refuses(ask({"--stop", ""}), "would end before anything");
  refuses(ask({"--numbers", "--prompt", "1", "--stop", "a"}), "give --stop-token");
  refuses({"sample", "hf:" + path("nowhere"), "--numbers", "--prompt", "1"}, "config.json");
  refuses(ask({"--data-dir", path("nowhere")}), "does not say what its tokens are");
  refuses({"sample", path("nowhere")}, "there is no checkpoint");
  // As many characters, one of them another.
  std::filesystem::copy(path("set"), path("other"));
  std::string characters = slurp(path("set") + "/vocabulary.txt");
  spill(path("other") + "/vocabulary.txt", characters.replace(characters.find('b'), 1, "a"));
  refuses(ask({"--prompt", "a", "--data-dir", path("other")}), "not those that");
  refuses({"export", path("run"), path("file"), "--names", "onnx"}, "choose --names thimble or");
}

TEST_F(Sample, OfWords) {
  ASSERT_EQ(thimble_says({"data", "tokens", "--by", "pieces", "--tokenise", "--out", path("words"),
                          path("text")})
                .code,
            0);
  ASSERT_EQ(train("of-words", {"--data-dir", path("words"), "--length", "4"}).code, 0);
  const Words ask = {"sample", path("of-words"), "--length", "3", "--prompt"};
  const Outcome said = thimble_says(ask + Words{"über"});
  ASSERT_EQ(said.code, 0) << said.err;
  // Words stand apart, of the prompt as well.
  EXPECT_TRUE(said.out.starts_with("über ") || said.out.starts_with("über\n")) << said.out;
  expect_mistake(thimble_says(ask + Words{"\xff"}), "the prompt is not UTF-8");
}

TEST_F(Sample, ExportsByBothNamesAndStartsFromEither) {
  for (const char* names : {"thimble", "transformers"}) {
    const std::string file = path(names);
    const Outcome written = thimble_says({"export", path("run"), file, "--names", names});
    ASSERT_EQ(written.code, 0) << written.err;
    // Without a step, weights are what was read.
    const Outcome again = train(std::string("from-") + names,
                                {"--weights", file, "--lr", "0", "--weight-decay", "0"});
    ASSERT_EQ(again.code, 0) << again.err;
    const std::string back = path(std::string("back-") + names);
    ASSERT_EQ(
        thimble_says({"export", path(std::string("from-") + names), back, "--names", names}).code,
        0);
    EXPECT_EQ(slurp(back), slurp(file));
  }
  // Of a deeper net it takes the layers that it has, but not without a word; a copy of the tied
  // projection and masks are none.
  const SafetensorsFile file(path("transformers"));
  std::vector<std::vector<std::byte>> kept;
  std::vector<TensorToWrite> tensors;
  kept.reserve(file.tensors().size() + 2);
  const auto add = [&](const std::string& name, const std::string& like) {
    kept.emplace_back(static_cast<size_t>(file.at(like).type.bytes().count));
    file.read_into(like, kept.back());
    tensors.push_back({name, file.at(like).type, kept.back(), {}});
  };
  for (const StoredTensor& tensor : file.tensors()) add(tensor.name, tensor.name);
  add("lm_head.weight", "transformer.wte.weight");
  add("transformer.h.0.attn.bias", "transformer.h.0.ln_1.bias");
  write_safetensors(path("same"), tensors);
  const Words sample = ask({"--prompt", "über", "--temperature", "0", "--weights"});
  const Outcome plain = thimble_says(sample + Words{path("same")});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.err, "");
  for (std::byte& byte : kept[kept.size() - 2]) byte ^= std::byte{1};
  tensors.back().name = "transformer.h.1.ln_1.bias";
  for (std::byte& byte : kept.back()) byte ^= std::byte{1};
  write_safetensors(path("deeper"), tensors);
  const Outcome deeper = thimble_says(sample + Words{path("deeper")});
  EXPECT_EQ(deeper.json()["text"], plain.json()["text"]);
  EXPECT_NE(deeper.err.find("2 tensors that the model has not, 'lm_head.weight' the first, were"),
            std::string::npos)
      << deeper.err;
  const SafetensorsFile theirs(path("transformers"));
  EXPECT_NE(theirs.find("transformer.h.0.mlp.c_fc.weight"), nullptr);
}

}  // namespace
}  // namespace thimble
