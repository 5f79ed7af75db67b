// The literature's three terms, against sums done by hand.
#include "report/memory_terms.h"

#include <gtest/gtest.h>

#include "select/choose.h"

namespace thimble {
namespace {

Recipe on_null(const ModelOptions& model, const char* optimizer = "nesterov") {
  Recipe recipe;
  recipe.model = model;
  recipe.device = "null";
  recipe.optimizer = parse_optimizer(optimizer);
  return recipe;
}

MemoryTerms on_paper(const Recipe& recipe) {
  return terms_on_paper(make_graph(recipe, largest_shape(recipe)).model.graph);
}

MemoryTerms planned(const Recipe& recipe) {
  const auto step = std::get<PlannedTraining>(plan_training(recipe));
  return terms_of(step.graph(), step.plan());
}

const ModelOptions kMlp = {
    .name = "mlp:layers=2,hidden=300", .batch = 8, .image = {4, 4, 1}, .classes = 10};
constexpr int64_t kMlpWeights = 16 * 300 + 300 + 300 * 300 + 300 + 300 * 10 + 10;

TEST(MemoryTerms, OfTheBaselineAreTheLiteratures) {
  const MemoryTerms terms = on_paper(on_null({.name = "wrn-28-2", .batch = 100}));
  EXPECT_EQ(terms.model.count, 4 * 1'467'610);
  EXPECT_EQ(terms.optimizer.count, 2 * 4 * 1'467'610);  // gradient and momentum
  // 953,482 numbers an image; besides, what the literature leaves out: mean and variance of the
  // 1,808 channels that are normalised, and a number for each row of the softmax.
  constexpr int64_t kChannels =
      (16 + 32 + 6 * 32) + (32 + 64 + 6 * 64) + (64 + 128 + 6 * 128) + 128;
  EXPECT_EQ(terms.activation.count, 4 * (100 * 953'482 + 2 * kChannels + 100));
  EXPECT_NEAR(static_cast<double>(terms.total().count), 399.0e6, 0.05e6);
}

TEST(MemoryTerms, OfASmallNetAreExact) {
  const MemoryTerms terms = on_paper(on_null(kMlp));
  EXPECT_EQ(terms.model.count, 4 * kMlpWeights);
  EXPECT_EQ(terms.optimizer.count, 8 * kMlpWeights);
  // The input of every layer, the logits, and a number a row of the softmax.
  EXPECT_EQ(terms.activation.count, 4 * 8 * (16 + 300 + 300 + 10 + 1));
  EXPECT_EQ(on_paper(on_null(kMlp, "adam")).optimizer.count, 12 * kMlpWeights);
}

TEST(MemoryTerms, OfAPlanAreWhatItKeeps) {
  const Recipe fp32 = on_null(kMlp, "sgd");
  const MemoryTerms kept = planned(fp32);
  EXPECT_EQ(kept.model.count, 4 * kMlpWeights);
  EXPECT_EQ(kept.activation, on_paper(fp32).activation);

  Recipe sixteen = fp32;
  sixteen.model.storage = DType::bf16;
  EXPECT_EQ(planned(sixteen).model.count, 2 * kMlpWeights);
  // Losses stay in f32: the logits too, which a cast makes for them.
  EXPECT_EQ(planned(sixteen).activation.count, 2 * 8 * (16 + 300 + 300) + 8 * (2 * 10 + 4));

  Recipe micro = fp32;
  micro.microbatch = 2;
  EXPECT_EQ(planned(micro).activation.count, 4 * 2 * (16 + 300 + 300 + 10 + 1));
  // Every gradient lives through all of it, each on a boundary of 64 bytes.
  EXPECT_EQ(planned(micro).optimizer.count, 8 * kMlpWeights + 16 + 16 + 32 + 24);
  micro.optimizer.fold = true;
  EXPECT_EQ(planned(micro).optimizer.count, 4 * kMlpWeights);

  Recipe recomputed = fp32;
  recomputed.planner = "log_recursive";
  EXPECT_LT(planned(recomputed).activation, kept.activation);
  EXPECT_EQ(planned(recomputed).model, kept.model);
}

TEST(MemoryTerms, CountCodesAndBitmaps) {
  Recipe coded = on_null(kMlp, "sgd");
  coded.codec = parse_codec_spec("int8");
  // The two hidden layers, 2400 numbers each, are coded: a byte a number, and for each of 10 groups
  // of 256 its range.
  const auto ranges = static_cast<int64_t>(2 * 10 * 2 * sizeof(float));
  EXPECT_LE(planned(coded).activation.count,
            2 * 2400 + ranges + 4 * 8 * (16 + 10 + 1) + 2 * 2400 / 8);
  EXPECT_GE(planned(coded).activation.count, 2 * 2400 + 4 * 8 * (16 + 10 + 1));

  Recipe sparse = on_null(kMlp, "sgd");
  sparse.sparsity = {.density = 0.25, .weights = {"hidden2.weight"}};
  constexpr int64_t kDense = kMlpWeights - 90'000;
  EXPECT_EQ(planned(sparse).model.count, 4 * (kDense + 22'500) + 90'000 / 8 + 8);
}

}  // namespace
}  // namespace thimble
