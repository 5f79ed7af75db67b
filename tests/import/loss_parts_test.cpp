// Losses of imported nets in micro-batches (gradient accumulation): each trains what whole batches
// would, or is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/io/json.h"
#include "imported_runs.h"
#include "select/choose.h"
#include "support/simulated_ranks.h"
#include "train/feed/caller_batches.h"

namespace thimble {
namespace {

using nlohmann::json;

json node(const char* op, json in, const char* out, json shape, json attrs = json::object()) {
  return {{"op", op},
          {"in", std::move(in)},
          {"out", {out}},
          {"attrs", std::move(attrs)},
          {"shapes", json::array({std::move(shape)})},
          {"at", "model.py:7"}};
}

json over(std::vector<int> axes) { return {{"axes", std::move(axes)}, {"keep", false}}; }

const json kScalar = json::array();
const json kPairs = {"rows", 2}, kRows = {"rows"};

// The result [rows,2] of the regression net of nets/ is compared with its targets by another loss.
struct Loss {
  const char* name;
  json nodes;           // the last one makes it
  const char* refused;  // by micro-batches, in words; empty: trained
};

// The square of each error as `error`, in front of the rest.
json of_errors(json rest) {
  json nodes = {node("sub", {"%9", "target"}, "gap", kPairs),
                node("mul", {"gap", "gap"}, "error", kPairs)};
  for (json& one : rest) nodes.push_back(std::move(one));
  return nodes;
}

// Numbers that are no function of a weight, as `mask`.
json masked(json rest) {
  json nodes = {node("relu", {"target"}, "mask", kPairs),
                node("mul", {"error", "mask"}, "left", kPairs)};
  for (json& one : rest) nodes.push_back(std::move(one));
  return of_errors(std::move(nodes));
}

std::vector<Loss> losses() {
  const json all = over({0, 1});
  return {
      {"mean", of_errors({node("mean", {"error"}, "loss", kScalar, all)}), ""},
      {"sum", of_errors({node("sum", {"error"}, "loss", kScalar, all)}), ""},
      {"sum_of_both",
       of_errors(
           {node("sum", {"error"}, "a", kScalar, all), node("mean", {"error"}, "b", kScalar, all),
            node("mul", {"b", -3.0}, "c", kScalar), node("sub", {"a", "c"}, "loss", kScalar)}),
       ""},
      {"masked_mean",
       masked({node("sum", {"left"}, "a", kScalar, all), node("sum", {"mask"}, "b", kScalar, all),
               node("div", {"a", "b"}, "loss", kScalar)}),
       ""},
      {"masked_mean_of_means",
       masked({node("mean", {"left"}, "a", kScalar, all), node("mean", {"mask"}, "b", kScalar, all),
               node("add", {"b", 0.25}, "c", kScalar), node("div", {"a", "c"}, "loss", kScalar)}),
       ""},
      {"masked_sum_times_mask",
       masked({node("sum", {"left"}, "a", kScalar, all), node("sum", {"mask"}, "b", kScalar, all),
               node("mul", {"b", "a"}, "loss", kScalar)}),
       ""},
      {"masked_mean_and_a_mean",
       masked({node("sum", {"left"}, "a", kScalar, all), node("sum", {"mask"}, "b", kScalar, all),
               node("div", {"a", "b"}, "c", kScalar), node("mean", {"error"}, "d", kScalar, all),
               node("add", {"c", "d"}, "loss", kScalar)}),
       "different counts"},
      {"with_decay",
       of_errors({node("mean", {"error"}, "a", kScalar, all),
                  node("mul", {"head.weight", "head.weight"}, "b", {2, 6}),
                  node("sum", {"b"}, "c", kScalar, all), node("add", {"a", "c"}, "loss", kScalar)}),
       ""},
      // len(x) as the exporter writes it.
      {"sum_by_rows_and_a_mean",
       of_errors({node("sum", {"error"}, "a", kScalar, all),
                  node("expand", {"constant.0"}, "one", {1, "rows", 6}),
                  node("cos", {"one"}, "ones", {1, "rows", 6}),
                  node("sum", {"ones"}, "rows", kScalar, over({0, 1, 2})),
                  node("div", {"a", "rows"}, "b", kScalar),
                  node("mean", {"error"}, "c", kScalar, all),
                  node("add", {"b", "c"}, "loss", kScalar)}),
       ""},
      {"mean_times_rows",
       of_errors({node("mean", {"error"}, "a", kScalar, all),
                  node("expand", {"constant.0"}, "one", {1, "rows", 6}),
                  node("cos", {"one"}, "ones", {1, "rows", 6}),
                  node("sum", {"ones"}, "rows", kScalar, over({0, 1, 2})),
                  node("mul", {"rows", "a"}, "loss", kScalar)}),
       ""},
      {"sum_times_rows",
       of_errors({node("sum", {"error"}, "a", kScalar, all),
                  node("expand", {"constant.0"}, "one", {1, "rows", 6}),
                  node("cos", {"one"}, "ones", {1, "rows", 6}),
                  node("sum", {"ones"}, "rows", kScalar, over({0, 1, 2})),
                  node("mul", {"rows", "a"}, "loss", kScalar)}),
       "grows with the number of rows"},
      {"root_of_mean",
       of_errors(
           {node("mean", {"error"}, "a", kScalar, all), node("sqrt", {"a"}, "loss", kScalar)}),
       "no sum over rows: sqrt (model.py:7)"},
      {"worst",
       of_errors({node("mean", {"error"}, "a", kRows, over({1})),
                  node("max", {"a"}, "loss", kScalar, over({0}))}),
       "no sum over rows: max (model.py:7)"},
      {"dice",
       of_errors({node("mul", {"%9", "target"}, "a", kPairs), node("sum", {"a"}, "b", kScalar, all),
                  node("mul", {"%9", "%9"}, "c", kPairs), node("sum", {"c"}, "d", kScalar, all),
                  node("add", {"d", 1.0}, "e", kScalar), node("div", {"b", "e"}, "loss", kScalar)}),
       "no sum over rows"},
      {"contrast",
       {node("permute", {"target"}, "a", {2, "rows"}, {{"axes", {1, 0}}}),
        node("matmul", {"%9", "a"}, "b", {"rows", "rows"}),
        node("mean", {"b"}, "loss", kScalar, all)},
       "no sum over rows"},
      {"centred",
       {node("mean", {"%9"}, "a", {2}, over({0})), node("sub", {"%9", "a"}, "b", kPairs),
        node("mul", {"b", "b"}, "c", kPairs), node("mean", {"c"}, "loss", kScalar, all)},
       "no sum over rows: sub (model.py:7)"},
      // A sum that is repeated for every row, and summed again, grows by the square of the rows.
      {"repeated",
       of_errors({node("sum", {"error"}, "a", {2}, over({0})), node("expand", {"a"}, "b", kPairs),
                  node("sum", {"b"}, "loss", kScalar, all)}),
       "no sum over rows: expand (model.py:7)"},
      {"flipped",
       {node("slice", {"%9"}, "a", kPairs, {{"axis", 1}, {"begin", 0}, {"end", 2}}),
        node("mul", {"a", "target"}, "b", kPairs), node("mean", {"b"}, "loss", kScalar, all)},
       ""},
  };
}

class LossInParts : public testing::TestWithParam<Loss> {};

std::string net_with(const Loss& loss, const TemporaryFolder& folder) {
  json net = read_json(kNets + "/series.json", "a net");
  json& nodes = net["nodes"];
  while (nodes.back()["out"][0] != "%9") nodes.erase(nodes.size() - 1);
  for (const json& one : loss.nodes) nodes.push_back(one);
  net["loss"] = "loss";
  spill(folder / "series.json", net.dump());
  spill(folder / "series.safetensors", slurp(kNets + "/series.safetensors"));
  return folder / "series.json";
}

// Gradients of a sum are far larger than those of a mean; both are summed in another order.
TEST_P(LossInParts, IsThatOfWholeBatchesOrRefused) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("series");
  recipe.model.name = net_with(GetParam(), folder);
  recipe.optimizer = parse_optimizer("sgd");
  recipe.schedule.rate = 1e-3;
  const Ended whole = train(recipe);
  for (const int64_t rows : {4, 3, 1}) {  // of 6: with a smaller last one, in halves, alone
    recipe.microbatch = rows;
    if (std::string_view refused = GetParam().refused; !refused.empty()) {
      const std::string message = message_of<UserError>([&] { train(recipe); });
      EXPECT_NE(message.find(refused), std::string::npos) << message;
      EXPECT_NE(message.find("leave --microbatch out"), std::string::npos) << message;
      continue;
    }
    const Ended parts = train(recipe);
    ASSERT_EQ(parts.losses.size(), whole.losses.size());
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(parts.losses[i], whole.losses[i], 3e-6 * std::max(1.0, std::abs(whole.losses[i])))
          << "micro-batches of " << rows << ", step " << i;
    }
  }
}

// Some budgets are met by micro-batches only, and by what folds gradients: neither is chosen for a
// loss that is another one then.
TEST_P(LossInParts, IsNotChosenByABudgetWhereItIsRefused) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("series");
  recipe.model.name = net_with(GetParam(), folder);
  recipe.memory = kLeastMemory;
  recipe.fit = true;
  const auto planned = choose_and_plan(recipe, {}, Machine::open(recipe));  // --allow equivalent
  const bool in_parts = std::get<PlannedTraining>(planned).microbatches.count() > 1;
  EXPECT_EQ(in_parts, std::string_view(GetParam().refused).empty());
}

INSTANTIATE_TEST_SUITE_P(Losses, LossInParts, testing::ValuesIn(losses()),
                         [](const auto& one) { return std::string(one.param.name); });

// The net over tokens, whose loss is a mean over labels, as `change` makes it.
std::string words_with(const TemporaryFolder& folder, const std::function<void(json&)>& change) {
  json net = read_json(kNets + "/words.json", "a net");
  change(net);
  spill(folder / "words.json", net.dump());
  spill(folder / "words.safetensors", slurp(kNets + "/words.safetensors"));
  return folder / "words.json";
}

json& attrs_of_loss(json& net) { return net["nodes"].back()["attrs"]; }

// A label of eleven, so that micro-batches count different numbers of them.
void ignore_the_third(json& net) { attrs_of_loss(net)["ignore"] = 3; }

struct Narrow {
  DType storage;
  const char* reduction;
  double close;  // roundings of what is stored, by a few layers
};

class IgnoredLabels : public testing::TestWithParam<Narrow> {};

TEST_P(IgnoredLabels, CountOnceForTheWholeStep) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("words");
  recipe.model.name = words_with(folder, [](json& net) {
    ignore_the_third(net);
    attrs_of_loss(net)["reduction"] = GetParam().reduction;
  });
  recipe.model.storage = GetParam().storage;
  recipe.model.master = GetParam().storage != DType::f32;
  const Ended whole = train(recipe);
  for (const int64_t rows : {4, 2, 1}) {
    recipe.microbatch = rows;
    const Ended parts = train(recipe);
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(parts.losses[i], whole.losses[i], GetParam().close * whole.losses[i]) << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, IgnoredLabels,
    testing::Values(Narrow{DType::f32, "mean", 3e-6}, Narrow{DType::f32, "sum", 3e-6},
                    Narrow{DType::bf16, "mean", 0x1p-8}, Narrow{DType::f16, "mean", 0x1p-11}),
    [](const auto& one) {
      return fmt::format("{}_{}", name_of(one.param.storage), one.param.reduction);
    });

// Labels are counted over all ranks, too.
TEST(IgnoredLabels, CountOnceForAllRanks) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("words");
  recipe.model.name = words_with(folder, ignore_the_third);
  const Ended whole = train(recipe);
  for (const int64_t rows : {3, 1}) {
    recipe.microbatch = rows;
    recipe.ranks = {2, Shard::none};
    Ended ended[2];
    SimulatedRanks(2).run(
        [&](Communicator& ranks) { ended[ranks.rank()] = train(recipe, "", {}, &ranks); });
    EXPECT_EQ(ended[0].weights, ended[1].weights);
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(ended[0].losses[i], whole.losses[i], 3e-6 * whole.losses[i]) << rows;
    }
  }
}

// The gradient of a micro-batch goes into the momentum at once, before the others have been
// counted.
TEST(IgnoredLabels, AreRefusedWhereGradientsAreFolded) {
  const TemporaryFolder folder;
  const auto one_group = [](json& net) {
    for (json& parameter : net["parameters"]) parameter.erase("group");
    net.erase("groups");
  };
  Recipe recipe = recipe_of("words");
  recipe.model.name = words_with(folder, one_group);
  recipe.optimizer = parse_optimizer("sgd");
  recipe.optimizer.fold = true;
  recipe.schedule.rate = 0.1;
  const Ended whole = train(recipe);
  recipe.microbatch = 2;
  const Ended parts = train(recipe);  // every label counts
  for (size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-5);
  }
  const TemporaryFolder other;
  recipe.model.name = words_with(other, [&](json& net) {
    one_group(net);
    ignore_the_third(net);
  });
  const std::string message = message_of<UserError>([&] { train(recipe); });
  EXPECT_NE(message.find("is 3, which does not count"), std::string::npos) << message;
}

// Two means, one over labels that count and one over all entries: no weight is that of both.
void add_a_mean(json& net) {
  ignore_the_third(net);
  const std::string first = net["loss"];
  net["nodes"].push_back(node("mul", {"%20", "%20"}, "a", {"rows", 6, 11}));
  net["nodes"].push_back(node("mean", {"a"}, "b", kScalar, over({0, 1, 2})));
  net["nodes"].push_back(node("add", {first, "b"}, "loss", kScalar));
  net["loss"] = "loss";
}

TEST(IgnoredLabels, AreRefusedWhereALossHasSeveralMeans) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("words");
  recipe.model.name = words_with(folder, add_a_mean);
  train(recipe);  // a whole batch may have them
  recipe.microbatch = 2;
  const std::string message = message_of<UserError>([&] { train(recipe); });
  EXPECT_NE(message.find("is 3, which does not count"), std::string::npos) << message;
}

// A cross-entropy of labels from the data is no mean over rows where the net has mixed them before.
TEST(IgnoredLabels, DoNotHideRowsThatAreMixed) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("words");
  recipe.model.name = words_with(folder, [](json& net) {
    json& nodes = net["nodes"];
    const auto loss = nodes.end() - 1;
    (*loss)["in"][0] = "logits";
    const json added = {node("reshape", {"%20"}, "wide", {"rows", 66}),
                        node("mean", {"wide"}, "middle", {66}, over({0})),
                        node("sub", {"wide", "middle"}, "centred", {"rows", 66}),
                        node("reshape", {"centred"}, "logits", {"rows*6", 11})};
    nodes.insert(loss, added.begin(), added.end());
  });
  recipe.microbatch = 2;
  const std::string message = message_of<UserError>([&] { train(recipe); });
  EXPECT_NE(message.find("no sum over rows: sub (model.py:7)"), std::string::npos) << message;
}

// Label 3 everywhere: numbers of noise are below a limit of their own.
TEST(IgnoredLabels, HaveToLeaveOneThatCounts) {
  const TemporaryFolder folder;
  Recipe recipe = recipe_of("words");
  recipe.model.name = words_with(folder, [](json& net) { attrs_of_loss(net)["ignore"] = 0; });
  for (const int64_t rows : {6, 2}) {
    recipe.microbatch = rows;
    PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
    CallerBatches batches({.fill = [](const BatchToFill& batch) {
      for (const BatchField& field : batch.fields)
        std::fill_n(field.data, field.type.bytes().count, std::byte{0});
      return batch.rows;
    }});
    Trainer trainer(planned, batches, {});
    const std::string message = message_of<UserError>([&] { trainer.run({}); });
    EXPECT_NE(message.find("no 'target' of step 1 counts: all are 0"), std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace thimble
