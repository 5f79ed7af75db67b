// GPT: what its names and settings make, weights in and out by another program's names, and going on
// with a text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "../file_support.h"
#include "base/error.h"
#include "generate/sampler.h"
#include "select/choose.h"
#include "train/trainer.h"
#include "transform/sparse_weights.h"
#include "weights/safetensors.h"
#include "weights/weights_file.h"

namespace thimble {
namespace {

constexpr int64_t kLength = 40;
constexpr int64_t kTokens = 12;

// The same sentence of tokens again and again, in windows: each token says which one follows.
class Sentence final : public Dataset {
 public:
  Sentence() {
    info_ = {.name = "sentence", .train_count = 64, .test_count = 8};
    for (const char* name : {"tokens", "targets"}) {
      info_.fields.push_back(
          {.name = name, .dtype = DType::i32, .shape = {kLength}, .limit = kTokens});
    }
  }
  static int32_t token(int64_t at) { return static_cast<int32_t>(at * 5 % kTokens); }
  const DatasetInfo& info() const override { return info_; }
  void read(Split, int64_t index, std::span<const RecordPart> parts) const override {
    for (size_t f = 0; f < parts.size(); ++f) {
      const std::span<int32_t> to = parts[f].all<int32_t>();
      for (size_t i = 0; i < to.size(); ++i) {
        to[i] = token(index * 7 + static_cast<int64_t>(i + f));
      }
    }
  }

 private:
  DatasetInfo info_;
};

Recipe small_recipe(const std::string& more = "") {
  Recipe recipe;
  recipe.model.name = "gpt:layers=2,heads=2,width=16,vocabulary=12,length=40" + more;
  recipe.model.batch = 4;
  recipe.optimizer = parse_optimizer("adamw");
  recipe.schedule.rate = 0.01;
  recipe.on.threads = 1;
  return recipe;
}

struct GptRun {
  explicit GptRun(const Recipe& recipe)
      : planned(std::get<PlannedTraining>(plan_training(recipe))), feeder(data, {}) {}

  Sentence data;
  PlannedTraining planned;
  Feeder feeder;
};

TEST(Gpt, NamesAreThePublishedOnes) {
  EXPECT_EQ(parameter_count(build_model({.name = "gpt2-124m", .batch = 1}).graph), 124'439'808);
  EXPECT_EQ(parameter_count(build_model({.name = "gpt2-1558m", .batch = 1}).graph), 1'557'611'200);
  EXPECT_THROW(build_model({.name = "gpt2-7b"}), UserError);
  EXPECT_THROW(build_model({.name = "gpt:width=10,heads=3"}), UserError);
  EXPECT_THROW(build_model({.name = "gpt2-124m:length=2048"}), UserError);
}

// Half of a head's channels could not be turned in pairs; learned positions are as many as asked for.
TEST(Gpt, SettingsChangeTheWeights) {
  const auto count = [](const char* name) {
    return parameter_count(build_model({.name = name, .batch = 1}).graph);
  };
  const int64_t plain = count("gpt:layers=1,heads=2,width=8,vocabulary=10,length=6");
  EXPECT_EQ(count("gpt:layers=1,heads=2,width=8,vocabulary=10,length=6,tied=off"), plain + 80);
  EXPECT_EQ(count("gpt:layers=1,heads=2,width=8,vocabulary=10,length=6,positions=rotary"),
            plain - 48);
}

// Where products add biases and shortcuts, neither has a node of its own, and what is learnt is the
// same but for rounding, in no more memory.
TEST(Gpt, ProductsAddBiasesAndShortcutsOnAGpu) {
  const auto count = [](const Graph& graph, std::string_view op) {
    return std::ranges::count_if(graph.nodes,
                                 [&](const Node& node) { return node.op->name == op; });
  };
  const auto trained = [&](bool on_gpu) {
    Recipe recipe = small_recipe(",loss_rows=8");
    complete_model(recipe.model, on_gpu);
    recipe.schedule.steps = 10;
    recipe.evaluate = false;
    GptRun run(recipe);
    EXPECT_EQ(count(run.planned.graph(), "affine"), on_gpu ? 8 : 0);
    EXPECT_EQ(count(run.planned.graph(), "bias_act"), on_gpu ? 0 : 8);
    const Bytes arena = run.planned.plan().arena;
    return std::pair(Trainer(run.planned, run.feeder).run([](const Progress&) {}).losses, arena);
  };
  const auto [apart, all] = trained(false);
  const auto [joined, less] = trained(true);
  ASSERT_EQ(joined.size(), 10u);
  for (size_t i = 0; i < joined.size(); ++i) EXPECT_NEAR(joined[i], apart[i], 1e-5);
  EXPECT_LE(less, all);

  ModelOptions dropping = {.name = "gpt:layers=2", .batch = 1, .dropout = 0.1};
  complete_model(dropping, true);
  EXPECT_EQ(count(build_model(dropping).graph, "add"), 4 + 1);  // and positions
}

TEST(Gpt, OnlyLayersOfBlocksAreSparse) {
  for (const char* name : {"gpt:layers=1,heads=2,width=8,length=6",
                           "gpt:layers=1,heads=2,width=8,length=6,tied=off"}) {
    for (const bool master : {false, true}) {
      ModelOptions options = {.name = name, .batch = 1};
      if (master) options.storage = DType::bf16, options.master = true;
      complete_model(options, master);  // on a GPU, too
      Graph graph = build_model(options).graph;
      sparsify(graph, {.density = 0.5});
      std::set<std::string> names;
      for (const SparseWeight& weight : find_sparse_weights(graph).weights) {
        names.insert(graph[weight.dense].name);
      }
      EXPECT_EQ(names,
                (std::set<std::string>{"block0.attention.qkv.weight", "block0.attention.out.weight",
                                       "block0.mlp.in.weight", "block0.mlp.out.weight"}))
          << name;
    }
  }
  Graph graph = build_model({.name = "gpt", .batch = 1}).graph;
  EXPECT_THROW(sparsify(graph, {.density = 0.5, .weights = {"tokens.*"}}), UserError);
}

TEST(Gpt, MatricesDecayAndNothingElse) {
  OptimizerSpec spec = parse_optimizer("adamw");
  spec.weight_decay = 0.1;
  const auto decays = [&](DecayOn on) {
    spec.decay_on = on;
    const TrainingGraph training =
        make_training_graph({.name = "gpt:layers=1,heads=1,width=4", .batch = 1}, spec);
    int all = 0, decayed = 0;
    for (const Node& node : training.model.graph.nodes) {
      if (node.op->name != "update") continue;
      const Value& weight = training.model.graph[node.inputs[0]];
      const bool decay = node.attrs.real("weight_decay") > 0;
      EXPECT_EQ(decay, on == DecayOn::all || weight.type.shape.rank() == 2) << weight.name;
      ++all;
      decayed += decay ? 1 : 0;
    }
    return std::pair(all, decayed);
  };
  EXPECT_EQ(decays(DecayOn::all), std::pair(16, 16));
  EXPECT_EQ(decays(DecayOn::matrices), std::pair(16, 6));
}

// A file as transformers has it: [in, out], names with or without what stands in front of all.
TEST(Gpt, ReadsAndWritesWeightsAsTransformersHasThem) {
  const TemporaryFolder folder;
  GptRun run(small_recipe());
  Trainer trainer(run.planned, run.feeder);
  Program& program = trainer.program();
  const std::optional<ForeignNames>& names = run.planned.full().model.foreign;
  ASSERT_TRUE(names);
  save_weights(folder / "theirs", program, names);
  const SafetensorsFile file(folder / "theirs");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.tensors().size(), 28u);
  EXPECT_EQ(file.at("transformer.wte.weight").type.shape, (Shape{12, 16}));
  EXPECT_EQ(file.at("transformer.h.1.attn.c_attn.weight").type.shape, (Shape{16, 48}));
  EXPECT_EQ(file.find("lm_head.weight"), nullptr);
  std::vector<float> turned(16 * 48);
  file.read_into("transformer.h.1.attn.c_attn.weight", std::as_writable_bytes(std::span(turned)));
  const auto own = program.view<float>(program.graph().find("block1.attention.qkv.weight"));
  for (size_t o = 0; o < 48; ++o) {
    for (size_t i = 0; i < 16; ++i) ASSERT_EQ(turned[i * 48 + o], own[o * 16 + i]);
  }

  // Without the prefix, beside tensors that nobody asked for.
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    bytes.emplace_back(static_cast<size_t>(tensor.type.bytes().count));
    file.read_into(tensor.name, bytes.back());
    tensors.push_back({tensor.name.substr(std::strlen("transformer.")), tensor.type, {}});
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = bytes[i];
  tensors.push_back(
      {"h.0.attn.bias", {{1}, DType::f32}, std::as_bytes(std::span(turned).first(1))});
  write_safetensors(folder / "bare", tensors);

  Recipe other = small_recipe();
  other.seed = 99;
  for (const char* path : {"theirs", "bare"}) {
    GptRun again(other);
    Trainer reader(again.planned, again.feeder, {.weights = folder / path});
    EXPECT_EQ(weights_sha256(reader.program()), weights_sha256(program)) << path;
  }
  // Of another model: nothing is read.
  GptRun narrow(small_recipe(",width=8"));
  EXPECT_THROW(Trainer(narrow.planned, narrow.feeder, {.weights = folder / "theirs"}), UserError);
}

TEST(Gpt, GoesOnWithATextItKnows) {
  const TemporaryFolder folder;
  Recipe recipe = small_recipe();
  recipe.schedule.steps = 150;
  recipe.evaluate = false;
  GptRun run(recipe);
  Trainer trainer(run.planned, run.feeder, {.out = folder / "run"});
  const TrainResult result = trainer.run([](const Progress&) {});
  EXPECT_LT(result.losses.back(), 0.1);

  const std::string checkpoint = checkpoint_in(folder / "run");
  const Recipe found = recipe_in(checkpoint);
  auto planned = plan_text_generation(found, Machine::open(found));
  Sampler sampler(std::get<PlannedGeneration>(std::move(planned)));
  sampler.load({.checkpoint = checkpoint});
  // Longer than the model, so that its beginning is forgotten on the way; the same from any seed.
  std::vector<int32_t> prompt, wanted;
  for (int64_t i = 0; i < 3; ++i) prompt.push_back(Sentence::token(i));
  for (int64_t i = 3; i < 90; ++i) wanted.push_back(Sentence::token(i));
  EXPECT_EQ(sampler.go_on(prompt, 87, {.temperature = 0}), wanted);
  EXPECT_EQ(sampler.go_on(prompt, 87, {.top_k = 1, .seed = 5}), wanted);
  EXPECT_EQ(checkpoint_in(checkpoint), checkpoint);
  EXPECT_THROW(checkpoint_in(folder / "nothing"), UserError);
  EXPECT_THROW(sampler.go_on({}, 1, {}), UserError);
  EXPECT_THROW(sampler.go_on({12}, 1, {}), UserError);
}

// Shares of three tokens, by ten thousand choices.
TEST(ChooseToken, GoesByProbabilityAndTheSeed) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), -1000};
  std::vector<int> counts(4);
  for (int64_t i = 0; i < 10'000; ++i) {
    const int32_t token = choose_token(logits, {.seed = 3}, i);
    EXPECT_EQ(choose_token(logits, {.seed = 3}, i), token);
    ++counts[static_cast<size_t>(token)];
  }
  // Five deviations of a binomial: 165, 217, 242.
  EXPECT_NEAR(counts[0], 1250, 165);
  EXPECT_NEAR(counts[1], 2500, 217);
  EXPECT_NEAR(counts[2], 6250, 242);
  EXPECT_EQ(counts[3], 0);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_NE(choose_token(logits, {.top_k = 2}, i), 0);
    EXPECT_EQ(choose_token(logits, {.temperature = 0}, i), 2);
    EXPECT_EQ(choose_token(logits, {.temperature = 0.01}, i), 2);
  }
}

}  // namespace
}  // namespace thimble
