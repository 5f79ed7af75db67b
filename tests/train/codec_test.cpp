// Activations kept encoded, trained for real.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../file_support.h"
#include "base/error.h"
#include "recipe/settings.h"
#include "support/runs.h"
#include "transform/codec_ladder.h"

namespace thimble {
namespace {

RunSetup coded_wrn(std::string_view codec) {
  RunSetup run = wrn_run();
  run.augment = false;
  run.rate = 0.05;
  run.codec = parse_codec_spec(codec);
  return run;
}

double mean_of(const std::vector<double>& losses, size_t first, size_t count) {
  const auto from = losses.begin() + static_cast<ptrdiff_t>(first);
  return std::accumulate(from, from + static_cast<ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

TEST(Codecs, TakeLessAndLessAndStillLearn) {
  Bytes before = TrainingRun(coded_wrn("none"), {.steps = 1}).planned().plan().arena;
  std::vector<Codec> codecs = rungs_of({.codec = codecs_by_error().back(), .automatic = true});
  codecs.erase(codecs.begin());  // masks lose nothing
  for (const Codec codec : codecs) {
    SCOPED_TRACE(codec->name);
    TrainingRun training(coded_wrn(codec->name), {.steps = 60, .evaluate = false});
    const TrainResult result = training.run();
    EXPECT_LT(training.planned().plan().arena, before);
    before = training.planned().plan().arena;
    EXPECT_EQ(result.measured_arena, before);
    EXPECT_EQ(training.planned().tier, NumericsTier::approximate);
    for (const double loss : result.losses) ASSERT_TRUE(std::isfinite(loss));
    EXPECT_LT(mean_of(result.losses, 50, 10), 0.8 * mean_of(result.losses, 0, 10));
  }
}

TEST(Codecs, MasksChangeNoBit) {
  RunSetup run = {.model = {.name = "mlp:hidden=64", .batch = 64, .dropout = 0.3}};
  TrainingRun plain(run, {.steps = 5, .evaluate = false});
  run.codec = parse_codec_spec("mask");
  TrainingRun masked(run, {.steps = 5, .evaluate = false});
  EXPECT_EQ(masked.run().weights_sha256, plain.run().weights_sha256);
  EXPECT_EQ(masked.planned().tier, NumericsTier::exact);
  const Graph& graph = masked.planned().graph();
  EXPECT_TRUE(std::any_of(graph.nodes.begin(), graph.nodes.end(),
                          [](const Node& node) { return node.op->name == "encode_signs"; }));
}

TEST(Codecs, LeaveCopiesOfWeightsAlone) {
  RunSetup cast = coded_wrn("int8"), expanded = cast;
  cast.model.storage = DType::bf16;
  cast.model.master = true;
  expanded.sparsity = {.density = 0.5};
  for (const RunSetup& run : {cast, expanded}) {
    const TrainingRun training(run, {.steps = 1, .evaluate = false});
    const Graph& graph = training.planned().graph();
    int encoded = 0;
    for (const Node& node : graph.nodes) {
      if (node.op->name != "encode_groups") continue;
      ++encoded;
      const Node& maker = graph[graph[node.inputs[0]].producer];
      EXPECT_TRUE(maker.op->name != "expand" && maker.op->name != "cast") << maker.name;
    }
    EXPECT_GT(encoded, 0);
  }
}

TEST(Codecs, PlannersKeepTheirBits) {
  for (const char* codec : {"mask", "bf16", "int4"}) {
    for (RunSetup run : {wrn_run(), lstm_run(), mlp_run()}) {
      SCOPED_TRACE(fmt::format("{} {}", run.model.name, codec));
      if (run.model.name.starts_with("lstm")) run.model.name += ",hidden=64";
      run.codec = parse_codec_spec(codec);
      run.microbatch = 7;
      const std::string expected =
          TrainingRun(run, {.steps = 2, .evaluate = false}).run().weights_sha256;
      for (const char* planner : {"drop_cheap", "sqrt_segments", "log_recursive", "mirror"}) {
        run.planner = planner;
        EXPECT_EQ(TrainingRun(run, {.steps = 2, .evaluate = false}).run().weights_sha256, expected)
            << planner;
      }
    }
  }
}

TEST(Codecs, GoWhereThePatternsSay) {
  RunSetup run = coded_wrn("int8");
  run.codec.only = {"*conv2d#*"};
  const TrainingRun some(run, {.steps = 1});
  for (const Node& node : some.planned().graph().nodes) {
    if (node.op->name != "encode_groups") continue;
    const Graph& graph = some.planned().graph();
    EXPECT_EQ(graph[graph[node.inputs[0]].producer].op->name, "conv2d");
  }
  run.codec.only = {"nothing*"};
  EXPECT_TRUE(throws_saying<UserError>([&] { TrainingRun(run, {.steps = 1}); }, "--codec-only"));
  run.codec = {nullptr, {"*"}};
  EXPECT_TRUE(throws_saying<UserError>([&] { TrainingRun(run, {.steps = 1}); },
                                       "says nothing without --codec"));
}

// A budget chooses; what it chose is the plan's, holds for every planner, and survives being written down.
TEST(AutomaticCodec, ChoiceIsRecordedAndKeepsItsBits) {
  RunSetup run = coded_wrn("int8");
  const Bytes enough = TrainingRun(run, {.steps = 1}).planned().plan().arena;
  run.codec = parse_codec_spec("auto:int8");
  EXPECT_TRUE(TrainingRun(run, {.steps = 1}).planned().recipe.codec.chosen->empty());

  run.memory = enough;
  TrainingRun chosen(run, {.steps = 3, .evaluate = false});
  const CodecSpec codec = chosen.planned().recipe.codec;
  ASSERT_FALSE(codec.chosen->empty());
  EXPECT_EQ(chosen.planned().tier, NumericsTier::approximate);
  EXPECT_LE(chosen.planned().plan().arena, *run.memory);
  const Graph& graph = chosen.planned().graph();
  std::vector<ValueCodec> found;
  for (const Encoded& encoded : find_encoded(graph)) {
    const ValueCodec entry = {graph[encoded.value].name, encoded.codec};
    const bool wanted = std::count(codec.chosen->begin(), codec.chosen->end(), entry) > 0;
    EXPECT_TRUE(wanted || !is_lossy(entry.codec));  // masks that decoded norms want come on top
    if (wanted) found.push_back(entry);
  }
  EXPECT_EQ(found, *codec.chosen);
  const std::string expected = chosen.run().weights_sha256;

  run.codec =
      recipe_from_json(nlohmann::json::parse(to_json(chosen.planned().recipe).dump()), "a record")
          .codec;
  run.memory = {};
  for (const char* planner : {"keep_all", "drop_cheap", "sqrt_segments", "mirror"}) {
    run.planner = planner;
    TrainingRun again(run, {.steps = 3, .evaluate = false});
    EXPECT_EQ(print_graph(again.planned().graph()), print_graph(graph));
    EXPECT_EQ(again.run().weights_sha256, expected) << planner;
  }
  run.codec.chosen->push_back({"no such value", parse_codec("int8")});
  EXPECT_TRUE(throws_saying<UserError>([&] { TrainingRun(run, {.steps = 1}); }, "no such value"));
}

// Where nothing may be lost, masks and recomputation are all there is.
TEST(AutomaticCodec, HeedsTheTierAllowed) {
  Recipe recipe;
  recipe.model = {.name = "mlp:layers=4,hidden=64", .batch = 64, .dropout = 0.3};
  recipe.optimizer = parse_optimizer("sgd");
  recipe.on.threads = 1;
  recipe.planner = "optimal";
  recipe.codec = parse_codec_spec("auto");
  recipe.allow = NumericsTier::exact;
  recipe.memory = Bytes(1);
  recipe.memory = std::get<Infeasible>(plan_training(recipe)).min_bytes;
  const auto planned = plan_training(recipe);
  ASSERT_TRUE(std::holds_alternative<PlannedTraining>(planned));
  EXPECT_EQ(std::get<PlannedTraining>(planned).tier, NumericsTier::exact);
  for (const ValueCodec& entry : *std::get<PlannedTraining>(planned).recipe.codec.chosen) {
    EXPECT_EQ(name_of(entry.codec), "mask");
  }
  recipe.memory = *recipe.memory - Bytes(1);
  EXPECT_TRUE(std::holds_alternative<Infeasible>(plan_training(recipe)));
}

TEST(AutomaticCodec, IsSpeltWithItsStrongestCodec) {
  EXPECT_EQ(to_string(parse_codec_spec("auto")), "auto:int4");
  EXPECT_EQ(to_string(parse_codec_spec("auto:bf16")), "auto:bf16");
  const auto rungs = [](std::string_view spelling) {
    std::vector<std::string_view> names;
    for (const Codec codec : rungs_of(parse_codec_spec(spelling))) names.push_back(codec->name);
    return names;
  };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(rungs("auto:bf16"), (Names{"mask", "bf16"}));
  EXPECT_EQ(rungs("auto:int8"), (Names{"mask", "fp16", "int8"}));
  EXPECT_EQ(rungs("auto:int3"), (Names{"mask", "fp16", "int8", "int4", "int3"}));
  const Names all = rungs("auto:int2");
  EXPECT_EQ(Names(all.begin(), all.begin() + 3), (Names{"mask", "fp16", "int8"}));
  EXPECT_EQ(all.back(), "int2");
  for (const char* wrong : {"auto:", "auto:none", "auto:int0", "autoint8", "automatic"}) {
    EXPECT_TRUE(throws_saying<UserError>([&] { parse_codec_spec(wrong); }, "codec")) << wrong;
  }
}

TEST(Codecs, LossyOnesAreApproximate) {
  EXPECT_NO_THROW(check_allowed(parse_codec_spec("mask"), NumericsTier::exact));
  EXPECT_TRUE(throws_saying<UserError>(
      [] { check_allowed(parse_codec_spec("int4"), NumericsTier::equivalent); }, "int4",
      "--codec mask"));
  EXPECT_TRUE(throws_saying<UserError>([] { parse_codec("int0"); }, "int4"));
}

}  // namespace
}  // namespace thimble
