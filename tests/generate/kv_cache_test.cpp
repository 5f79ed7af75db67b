// Texts continued with a KV cache: the tokens and logits of the whole text, recomputed for each token,
// in bytes that are known beforehand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../file_support.h"
#include "base/error.h"
#include "generate/sampler.h"
#include "recipe/settings.h"
#include "select/choose.h"
#include "weights/model_tensors.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

// Of attention's sums in another order, in f32, relative to the largest logit.
constexpr float kRounding = 3e-5f;
constexpr int64_t kTokens = 210;

const std::string kShared =
    R"("vocab_size":61,"hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,)"
    R"("intermediate_size":48,"max_position_embeddings":512,"rms_norm_eps":1e-6)";

// A folder of transformers, with zeros for weights.
struct Decoder {
  explicit Decoder(const std::string& config) {
    spill(folder / "config.json", "{" + config + "," + kShared + "}");
    const Model model = build_model({.name = name(), .batch = 1});
    const std::vector<std::byte> zeros(size_t{1} << 16);
    std::vector<TensorToWrite> tensors;
    for (const Value& value : model.graph.values) {
      if (value.role != Role::weight) continue;
      const auto bytes = static_cast<size_t>(value.type.bytes().count);
      tensors.push_back({value.name, value.type, std::span(zeros).first(bytes)});
    }
    write_safetensors(folder / "model.safetensors", tensors);
  }
  std::string name() const { return "hf:" + folder.path(); }
  TemporaryFolder folder;
};

Recipe recipe_of(const std::string& model, const std::string& settings) {
  Recipe recipe;
  recipe.model.name = model;
  recipe.on.threads = 1;
  recipe.seed = 3;
  if (!settings.empty()) configure(recipe, parse_settings(settings));
  return recipe;
}

PlannedGeneration planned(const Recipe& recipe, const TextGeneration& asked = {}) {
  auto made = plan_text_generation(recipe, Machine::open(recipe), asked);
  return std::get<PlannedGeneration>(std::move(made));
}

// Numbers that tell positions and tokens apart: those of the usual first values are small.
void draw_weights(Sampler& sampler) {
  Program& program = sampler.model().program();
  const Graph& graph = program.graph();
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const Value& value = graph[tensor.value];
    if (value.name.starts_with("positions.cosine") || value.name.starts_with("positions.sine")) {
      continue;
    }
    const TensorType type = type_of(tensor, graph);
    const bool matrix = type.shape.rank() == 2;
    uint32_t state = 11;
    for (const char letter : value.name) state = state * 31 + static_cast<uint8_t>(letter);
    with_float_type(type.dtype, [&]<class T>(TypeTag<T>) {
      std::vector<T> numbers;
      for (int64_t i = 0; i < type.elements(); ++i) {
        state = state * 1664525u + 1013904223u;
        const double drawn = static_cast<double>(state >> 8) * 0x1p-23 - 1;
        numbers.push_back(static_cast<T>(matrix ? 0.35 * drawn : 1 + 0.2 * drawn));
      }
      write_model_tensor(program, tensor, 0, std::as_bytes(std::span(numbers)));
    });
  }
}

std::vector<float> logits_of(Sampler& sampler, const std::vector<int32_t>& text) {
  const std::span<const float> made = sampler.next(text);
  return {made.begin(), made.end()};
}

// Continues a text by so many tokens, each the likeliest, and compares logits at every one of them. A
// token is the likeliest by more than rounding, or the test says nothing.
void expect_same(const Recipe& recipe, int64_t more) {
  SCOPED_TRACE(recipe.model.name);
  Sampler whole(planned(recipe, {.cache = KvCache::off}));
  Sampler cached(planned(recipe, {.cache = KvCache::on}));
  EXPECT_EQ(whole.planned().cache, Bytes());
  EXPECT_GT(cached.planned().cache, Bytes());
  draw_weights(whole);
  draw_weights(cached);
  std::vector<int32_t> text = {5, 11, 2, 40, 7, 7, 31, 19, 3, 58, 1, 0, 22, 23, 24, 25, 26, 27};
  const std::vector<int32_t> prompt = text;
  int64_t told = 0;
  for (int64_t i = 0; i < more; ++i) {
    const std::vector<float> wanted = logits_of(whole, text), got = logits_of(cached, text);
    const auto [least, most] = std::ranges::minmax(wanted);
    const float tolerance = kRounding * std::max(std::abs(least), std::abs(most));
    for (size_t t = 0; t < wanted.size(); ++t) ASSERT_NEAR(got[t], wanted[t], tolerance) << i;
    const auto best = std::ranges::max_element(wanted) - wanted.begin();
    std::vector<float> sorted = wanted;
    std::ranges::sort(sorted, std::greater());
    told += sorted[0] - sorted[1] > 2 * tolerance ? 1 : 0;
    text.push_back(static_cast<int32_t>(best));
  }
  EXPECT_EQ(told, more);
  EXPECT_EQ(cached.computed(), std::ssize(text) - 1);
  const std::vector<int32_t> made(text.begin() + std::ssize(prompt), text.end());
  cached.forget();
  EXPECT_EQ(cached.go_on(prompt, more, {.temperature = 0}), made);
}

const std::string kGpt = "gpt:layers=2,heads=2,width=16,vocabulary=61,length=256";

TEST(KvCache, MakesTheTokensOfTheWholeText) {
  expect_same(recipe_of(kGpt, ""), kTokens);
  expect_same(recipe_of(kGpt + ",positions=rotary,tied=off", ""), kTokens);
  for (const char* config :
       {R"("model_type":"llama","num_key_value_heads":2)",
        R"("model_type":"qwen2","num_key_value_heads":1,"tie_word_embeddings":false)",
        R"("model_type":"qwen3","num_key_value_heads":2,"head_dim":8)",
        R"("model_type":"smollm3","num_key_value_heads":2,"no_rope_layers":[1,0])"}) {
    const Decoder decoder(config);
    expect_same(recipe_of(decoder.name(), "length = 256"), kTokens);
  }
}

// The head of an untied net is neither adapted nor coded, as while training; frozen matrices are
// decoded to the same numbers, whatever the shape of the product.
TEST(KvCache, WithAdaptersFrozenFormatsAndBf16) {
  for (const char* frozen : {"bf16", "int8", "nf4"}) {
    const std::string settings =
        fmt::format("lora = \"rank=4,alpha=4,dropout=0.5\"\nfrozen = \"{}\"\n", frozen);
    expect_same(recipe_of(kGpt + ",tied=off", settings), 40);
  }
  const Decoder decoder(
      R"("model_type":"llama","num_key_value_heads":2,"tie_word_embeddings":false)");
  expect_same(
      recipe_of(decoder.name(), "length = 256\nlora = \"rank=4,alpha=4\"\nfrozen = \"nf4\"\n"), 40);
}

// The numbers of bf16 are 2^-8 apart: logits of a few roundings each.
TEST(KvCache, InBf16) {
  Recipe recipe = recipe_of(kGpt, "precision = \"bf16\"");
  Sampler whole(planned(recipe, {.cache = KvCache::off})), cached(planned(recipe));
  draw_weights(whole);
  draw_weights(cached);
  EXPECT_EQ(cached.planned().cache, Bytes(2 * 2 * 256 * 16 * 2));
  std::vector<int32_t> text = {5, 11, 2, 40};
  for (int64_t i = 0; i < 60; ++i) {
    const std::vector<float> wanted = logits_of(whole, text), got = logits_of(cached, text);
    const auto [least, most] = std::ranges::minmax(wanted);
    const float tolerance = 0.03f * std::max(std::abs(least), std::abs(most));
    for (size_t t = 0; t < wanted.size(); ++t) ASSERT_NEAR(got[t], wanted[t], tolerance) << i;
    text.push_back(static_cast<int32_t>(i * 7 % 61));
  }
}

// A text that is longer than the context is forgotten from its beginning on, as without a cache.
TEST(KvCache, ForgetsAsWithoutOne) {
  const Recipe recipe = recipe_of("gpt:layers=1,heads=2,width=16,vocabulary=61,length=20", "");
  Sampler whole(planned(recipe, {.cache = KvCache::off})), cached(planned(recipe));
  draw_weights(whole);
  draw_weights(cached);
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 33; ++i) prompt.push_back(i * 5 % 61);
  const std::vector<int32_t> made = whole.go_on(prompt, 100, {.seed = 4});
  EXPECT_EQ(cached.go_on(prompt, 100, {.seed = 4}), made);
  EXPECT_LE(cached.held(), 20);
}

// The next turn of a chat computes what is new in it, whatever was computed for the last.
TEST(KvCache, ComputesOnlyWhatItDoesNotHold) {
  Sampler sampler(planned(recipe_of(kGpt, "")));
  draw_weights(sampler);
  std::vector<int32_t> text(40, 3);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i % 50);
  const std::vector<int32_t> first = sampler.go_on(text, 10, {.temperature = 0});
  EXPECT_EQ(sampler.computed(), 40 + 9);  // the last token made is not read
  EXPECT_EQ(sampler.held(), 49);
  text.insert(text.end(), first.begin(), first.end());
  text.insert(text.end(), {9, 8, 7});
  sampler.go_on(text, 1, {.temperature = 0});
  EXPECT_EQ(sampler.computed(), 49 + 4);
  // The same text again: its last token, whose logits are asked for.
  const std::vector<float> again = logits_of(sampler, text);
  EXPECT_EQ(sampler.computed(), 53 + 1);
  // Another one from its twentieth token on.
  text[20] = 60;
  const std::vector<float> other = logits_of(sampler, text);
  EXPECT_EQ(sampler.computed(), 54 + 33);
  sampler.forget();
  EXPECT_EQ(sampler.held(), 0);
  EXPECT_EQ(logits_of(sampler, text), other);
  EXPECT_EQ(sampler.computed(), 87 + 53);
}

TEST(KvCache, EndsBeforeAStopToken) {
  Sampler sampler(planned(recipe_of(kGpt, "")));
  draw_weights(sampler);
  const std::vector<int32_t> prompt = {4, 5, 6};
  const std::vector<int32_t> made = sampler.go_on(prompt, 40, {.seed = 2});
  ASSERT_EQ(made.size(), 40u);
  const int32_t stop = made[20];
  const auto first = std::ranges::find(made, stop);
  EXPECT_EQ(sampler.go_on(prompt, 40, {.seed = 2, .stop = {stop}}),
            std::vector<int32_t>(made.begin(), first));
}

// Keys and values of every layer and position, beside the weights and no more than a chunk's
// activations; in less than training takes.
TEST(KvCache, TakesTheBytesThatThePlanSays) {
  const Decoder decoder(R"("model_type":"llama","num_key_value_heads":2)");
  for (const Recipe& recipe : {recipe_of(decoder.name(), "length = 256"), recipe_of(kGpt, "")}) {
    const bool shared = recipe.model.name != kGpt;
    const PlannedGeneration made = planned(recipe);
    EXPECT_EQ(made.context, 256);
    EXPECT_EQ(made.cache, Bytes(2 * 2 * 256 * 16 * 4)) << shared;  // two layers of 16 channels
    EXPECT_EQ(made.steps.size(), 4u);
    const auto training = plan_training(recipe);
    EXPECT_LE(made.plan().arena, std::get<PlannedTraining>(training).plan().arena);
  }
}

TEST(KvCache, FitsTheBudgetOrSaysSo) {
  Recipe recipe = recipe_of(kGpt, "");
  const PlannedGeneration free = planned(recipe);
  recipe.memory = free.plan().arena;
  EXPECT_EQ(planned(recipe).plan().arena, free.plan().arena);
  // Shorter chunks, then none beside the cache.
  recipe.memory = free.plan().arena - Bytes(64);
  const PlannedGeneration less = planned(recipe);
  EXPECT_EQ(less.cache, free.cache);
  EXPECT_LT(less.full().shape.length, free.full().shape.length);
  EXPECT_LE(less.plan().arena, *recipe.memory);
  const Bytes weights = [&] {
    Bytes sum;
    for (const Value& value : free.full().model.graph.values) {
      if (value.role == Role::weight) sum += value.type.bytes();
    }
    return sum;
  }();
  recipe.memory = weights + free.cache;
  const auto none = plan_text_generation(recipe, Machine::open(recipe), {.cache = KvCache::on});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
  const auto& why = std::get<Infeasible>(none);
  EXPECT_GT(why.min_bytes, *recipe.memory);
  EXPECT_NE(why.why.find("give --memory more, or a shorter --context"), std::string::npos);
  recipe.memory = why.min_bytes;
  EXPECT_EQ(planned(recipe, {.cache = KvCache::on}).plan().arena, why.min_bytes);
  // A shorter context has a smaller cache.
  recipe.memory = why.min_bytes - Bytes(1);
  EXPECT_LT(planned(recipe, {.context = 200, .cache = KvCache::on}).cache, free.cache);
}

TEST(KvCache, FallsBackToTheWholeTextAndSaysSo) {
  Recipe recipe = recipe_of("gpt:layers=8,heads=2,width=16,vocabulary=61,length=512", "");
  const Bytes whole = planned(recipe, {.cache = KvCache::off}).plan().arena;
  const Bytes cached = planned(recipe, {.cache = KvCache::on}).plan().arena;
  ASSERT_LT(whole, cached);
  recipe.memory = whole;
  const PlannedGeneration made = planned(recipe);
  EXPECT_EQ(made.cache, Bytes());
  EXPECT_EQ(made.plan().arena, whole);
  EXPECT_NE(made.note.find("a KV cache of 512 tokens and the weights take"), std::string::npos)
      << made.note;
}

TEST(KvCache, OfModelsThatContinueTextsAlone) {
  const auto refusal = [](const std::string& model, const TextGeneration& asked = {}) {
    return message_of<UserError>([&] { planned(recipe_of(model, ""), asked); });
  };
  EXPECT_NE(refusal("mlp").find("mlp does not go on with a text; choose a run of gpt or hf:"),
            std::string::npos);
  EXPECT_NE(refusal("lstm").find("does not go on with a text"), std::string::npos);
  EXPECT_NE(refusal(kGpt, {.context = 300}).find("has 256 learned positions"), std::string::npos);
  EXPECT_EQ(refusal(kGpt + ",positions=rotary", {.context = 300}), "");
  const Decoder decoder(R"("model_type":"llama","num_key_value_heads":2)");
  EXPECT_NE(refusal(decoder.name(), {.context = 513}).find("knows 512 positions"),
            std::string::npos);
}

}  // namespace
}  // namespace thimble
