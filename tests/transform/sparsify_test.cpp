#include "transform/sparsify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "select/choose.h"
#include "support/plan_cases.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

std::set<std::string> sparse_names(const ModelOptions& options, const SparsitySpec& spec) {
  Graph graph = build_model(options).graph;
  sparsify(graph, spec);
  verify_graph(graph);
  std::set<std::string> names;
  for (const SparseWeight& weight : find_sparse_weights(graph).weights) {
    names.insert(graph[weight.dense].name);
  }
  return names;
}

Plan planned(Recipe recipe, double density) {
  recipe.sparsity.density = density;
  recipe.on.threads = 1;
  return std::get<PlannedTraining>(plan_training(recipe)).plan();
}

Bytes at_peak(const Plan& plan, Role role) { return plan.peak_by_role[static_cast<size_t>(role)]; }

TEST(Sparsify, ChoosesTheConvolutionsOfBlocks) {
  Graph graph = build_model({.name = "wrn-28-2"}).graph;
  sparsify(graph, {.density = 0.3});
  const SparseWeights sparse = find_sparse_weights(graph);
  EXPECT_EQ(sparse.weights.size(), 24u);
  EXPECT_EQ(sparsity_of(graph).elements, 1'451'520);
  int64_t nonzeros = 0;
  for (const SparseWeight& weight : sparse.weights) {
    const Value& dense = graph[weight.dense];
    EXPECT_EQ(dense.type.shape[1], 3) << dense.name;
    const auto kept = static_cast<int64_t>(graph[weight.mask].init.scale);
    EXPECT_EQ(kept, std::llround(0.3 * static_cast<double>(dense.type.elements())));
    nonzeros += kept;
  }
  EXPECT_EQ(graph[sparse.values].type.elements(), nonzeros);
}

// Never embeddings, norms, the projection onto the vocabulary, or kernels that are no linear layer.
TEST(Sparsify, ChoosesTheLinearLayersOfATranslatorsBlocks) {
  const std::string small =
      "width=8,heads=2,encoder=1,decoder=1,length=4,"
      "source-vocabulary=9,target-vocabulary=9";
  std::set<std::string> expected;
  for (const char* name :
       {"encoder.layer0.conv.in", "encoder.layer0.conv.out", "encoder.layer0.mlp.in",
        "encoder.layer0.mlp.out", "decoder.layer0.conv.in", "decoder.layer0.conv.out",
        "decoder.layer0.attention.query", "decoder.layer0.attention.key",
        "decoder.layer0.attention.value", "decoder.layer0.attention.out", "decoder.layer0.mlp.in",
        "decoder.layer0.mlp.out"}) {
    expected.insert(std::string(name) + ".weight");
  }
  EXPECT_EQ(sparse_names({.name = "lightconv:" + small, .batch = 2}, {.density = 0.5}), expected);
  expected.insert({"encoder.layer0.conv.kernel.weight", "decoder.layer0.conv.kernel.weight"});
  EXPECT_EQ(sparse_names({.name = "dynamicconv:" + small, .batch = 2}, {.density = 0.5}), expected);
}

TEST(Sparsify, LeavesStemShortcutsAndTheLastLayer) {
  EXPECT_EQ(sparse_names(small_mlp(), {.density = 0.5}),
            (std::set<std::string>{"hidden1.weight", "hidden2.weight"}));
  EXPECT_EQ(sparse_names(small_lstm(), {.density = 0.5}),
            (std::set<std::string>{"layer1.input.weight", "layer1.recurrent.weight",
                                   "layer2.input.weight", "layer2.recurrent.weight"}));
  for (const std::string& name : sparse_names(small_resnet(), {.density = 0.5})) {
    EXPECT_EQ(name.find("shortcut"), std::string::npos);
    EXPECT_NE(name, "stem.weight");
    EXPECT_NE(name, "classifier.weight");
  }
}

TEST(Sparsify, ObeysPatternsOverWeightNames) {
  EXPECT_EQ(sparse_names(small_mlp(), {.density = 0.5, .weights = {"classifier*"}}),
            (std::set<std::string>{"classifier.weight"}));
  EXPECT_EQ(sparse_names(small_mlp(), {.density = 0.5, .weights = {"*"}}).size(), 3u);
  EXPECT_THROW(sparse_names(small_mlp(), {.density = 0.5, .weights = {"*.bias"}}), UserError);
  EXPECT_THROW(sparse_names(small_mlp(), {.density = 1.5}), UserError);
}

TEST(Sparsify, ChangesNothingUnlessAsked) {
  const TrainingGraph plain = make_training_graph(small_wrn(), parse_optimizer("nesterov"));
  const TrainingGraph off =
      make_training_graph(small_wrn(), parse_optimizer("nesterov"), {}, 1, SparsitySpec{});
  EXPECT_EQ(print_graph(plain.model.graph), print_graph(off.model.graph));
}

// Between the node that completes it and the gather, nothing else runs.
TEST(Sparsify, DenseGradientsAreGatheredAtOnce) {
  for (const ModelOptions& options : {small_wrn(), small_lstm(), small_mlp(), small_unet()}) {
    const Graph graph =
        make_training_graph(options, parse_optimizer("nesterov"), {}, 1, {.density = 0.5})
            .model.graph;
    size_t gathers = 0;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].op->name != "gather") continue;
      ++gathers;
      size_t made = graph[graph.nodes[n].inputs[0]].producer.at();
      while (++made < n) EXPECT_EQ(graph.nodes[made].op->name, "gather") << options.name;
    }
    EXPECT_EQ(gathers, find_sparse_weights(graph).weights.size());
  }
}

TEST(Sparsify, BytesScaleWithDensity) {
  Recipe recipe;
  recipe.model = {.name = "wrn-16-2", .batch = 20, .image = {16, 16, 3}};
  recipe.microbatch = 5;
  recipe.optimizer = parse_optimizer("nesterov");
  const Plan whole = planned(recipe, 1);
  Recipe sparse = recipe;
  sparse.sparsity.density = 1;
  const Graph graph = make_graph(sparse, largest_shape(sparse)).model.graph;
  const auto elements = static_cast<double>(sparsity_of(graph).elements);
  for (const double density : {0.1, 0.3, 0.5, 0.9}) {
    SCOPED_TRACE(density);
    const Plan plan = planned(recipe, density);
    const double saved = (1 - density) * elements * 4;
    // Weights, gradients and momentum each shrink by the zeros; a pool is aligned, and every weight
    // keeps a whole number of elements.
    for (const Role role : {Role::weight, Role::gradient, Role::optimizer_state}) {
      const auto less = static_cast<double>((at_peak(whole, role) - at_peak(plan, role)).count);
      EXPECT_NEAR(less, saved, 64 + 4 * 24) << name_of(role);
    }
    EXPECT_EQ(at_peak(whole, Role::statistic), at_peak(plan, Role::statistic));
    // The rest of the arena stays as it is.
    EXPECT_NEAR(static_cast<double>((whole.arena - plan.arena).count), 3 * saved,
                3 * (64 + 4 * 24));
  }
}

TEST(Sparsify, FoldingLeavesNoGradientAtAll) {
  Recipe recipe;
  recipe.model = small_wrn();
  recipe.microbatch = 2;
  recipe.optimizer = folded_sgd();
  EXPECT_EQ(at_peak(planned(recipe, 0.3), Role::gradient), Bytes(0));
}

TEST(Sparsify, IsApproximateUnlessNothingIsLeftOut) {
  const auto tier = [](double density) {
    Recipe recipe;
    recipe.model = small_wrn();
    recipe.sparsity.density = density;
    return std::get<PlannedTraining>(plan_training(recipe)).tier;
  };
  EXPECT_EQ(tier(0.5), NumericsTier::approximate);
  EXPECT_EQ(tier(1), NumericsTier::exact);
  Recipe recipe;
  recipe.model = small_wrn();
  recipe.sparsity.density = 0.5;
  recipe.allow = NumericsTier::equivalent;
  EXPECT_THROW(plan_training(recipe), UserError);
}

}  // namespace
}  // namespace thimble
