// Small networks that PyTorch exported, trained here: its losses, the bits of every policy, budgets.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/io/file.h"
#include "imported_runs.h"
#include "weights/safetensors.h"

namespace thimble {
namespace {

class ImportedNet : public testing::TestWithParam<const char*> {};

// Rounding in another order, over eight steps of losses of about two.
TEST_P(ImportedNet, HasTheLossesOfPyTorch) {
  const Ended ended = train(recipe_of(GetParam()));
  std::ifstream file(fmt::format("{}/{}.losses", kNets, GetParam()));
  std::vector<double> expected;
  for (double loss = 0; file >> loss;) expected.push_back(loss);
  ASSERT_EQ(ended.losses.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(ended.losses[i], expected[i], 2e-5);
}

// With any values kept or recomputed, and in the least memory that is possible.
TEST_P(ImportedNet, HasTheSameBitsWithEveryPolicyInsideOfItsBudget) {
  Recipe recipe = recipe_of(GetParam());
  const Ended kept = train(recipe);
  EXPECT_EQ(kept.measured, kept.arena);
  for (const char* policy : {"sqrt_segments", "drop_cheap", "mirror", "log_recursive"}) {
    recipe.planner = policy;
    const Ended other = train(recipe);
    EXPECT_EQ(other.weights, kept.weights) << policy;
    EXPECT_EQ(other.losses, kept.losses) << policy;
  }
  recipe.planner = "optimal";
  recipe.memory = kLeastMemory;
  const Ended least = train(recipe);
  EXPECT_EQ(least.weights, kept.weights);
  EXPECT_LE(least.arena, kept.arena);
  recipe.memory = least.arena;
  EXPECT_EQ(train(recipe).measured, least.arena);
  recipe.memory = Bytes(least.arena.count - 1);
  const auto none = plan_training(recipe);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
  EXPECT_EQ(std::get<Infeasible>(none).min_bytes, least.arena);
}

// Names and shapes of the file it came from, constants left out, tied names both there.
TEST_P(ImportedNet, GoesBackAsItCame) {
  const TemporaryFolder folder;
  const std::string path = folder / "went.safetensors";
  train(recipe_of(GetParam()), path);
  const SafetensorsFile came(kNets + "/" + GetParam() + ".safetensors"), went(path);
  for (const StoredTensor& tensor : came.tensors()) {
    if (tensor.name.starts_with("constant.")) {
      EXPECT_EQ(went.find(tensor.name), nullptr);
      continue;
    }
    ASSERT_NE(went.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(went.at(tensor.name).type, tensor.type);
  }
  if (GetParam() == std::string("words")) {
    std::vector<float> table(88), head(88);
    went.read_into("table.weight", std::as_writable_bytes(std::span(table)));
    went.read_into("head.weight", std::as_writable_bytes(std::span(head)));
    EXPECT_EQ(table, head);
  }
  if (GetParam() == std::string("pictures")) {  // frozen: to the bit
    std::vector<float> before(8 * 3 * 9), after(8 * 3 * 9);
    came.read_into("stem.weight", std::as_writable_bytes(std::span(before)));
    went.read_into("stem.weight", std::as_writable_bytes(std::span(after)));
    EXPECT_EQ(before, after);
  }
}

// Microbatches of nets whose rows are independent: the same maths, summed in another order.
TEST(Imported, MicrobatchesAddUp) {
  for (const char* net : {"words", "series"}) {
    Recipe recipe = recipe_of(net);
    const Ended whole = train(recipe);
    recipe.microbatch = 4;  // and a last one of two
    const Ended parts = train(recipe);
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(parts.losses[i], whole.losses[i], 2e-5) << net;
    }
  }
}

// Where products add biases, those have no nodes of their own; what is learnt is the same but for rounding.
TEST(Imported, ProductsAddBiasesOnAGpu) {
  const auto trained = [](bool on_gpu) {
    Recipe recipe = recipe_of("words");
    complete_model(recipe.model, on_gpu);
    const auto planned = std::get<PlannedTraining>(plan_training(recipe));
    const auto nodes = std::ranges::count_if(
        planned.graph().nodes, [](const Node& node) { return node.op->name == "affine"; });
    EXPECT_EQ(nodes, on_gpu ? 2 : 0);
    return train(recipe);
  };
  const Ended apart = trained(false), joined = trained(true);
  EXPECT_LE(joined.arena, apart.arena);
  ASSERT_EQ(joined.losses.size(), apart.losses.size());
  for (size_t i = 0; i < apart.losses.size(); ++i) {
    EXPECT_NEAR(joined.losses[i], apart.losses[i], 1e-5);
  }
}

TEST(Imported, FrozenWeightsHaveNeitherGradientNorState) {
  const auto planned = std::get<PlannedTraining>(plan_training(recipe_of("pictures")));
  const Graph& graph = planned.graph();
  EXPECT_EQ(graph[graph.find("stem.weight")].role, Role::frozen);
  EXPECT_FALSE(graph.find("update.stem.weight.first_moment").valid());
  EXPECT_TRUE(graph.find("update.head.weight.first_moment").valid());
}

// The older exporter of PyTorch writes a causal mask as a constant.
TEST(Imported, AMaskOfMinusInfinityIsSavedAndGoneOnFrom) {
  const TemporaryFolder folder;
  const Recipe recipe = recipe_of("words", ".onnx");
  int asked = 0;
  train(recipe, "", {.out = folder / "run", .stop = [&] { return ++asked == 4; }});
  EXPECT_EQ(train(recipe, "", {.out = folder / "run", .resume = true}).weights,
            train(recipe).weights);
}

// A value that is infinite on purpose is passed over: the first that ought to be finite is named.
TEST(Imported, AMaskOfMinusInfinityIsNotBlamed) {
  const Recipe recipe = recipe_of("words", ".onnx");
  PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
  const auto data =
      open_dataset("noise", {.wanted = fields_read(planned.full().model), .seed = recipe.seed});
  const Feeder feeder(*data, {.seed = recipe.seed});
  Trainer trainer(planned, feeder, {});
  const Graph& graph = trainer.program().graph();
  std::vector<float> huge(8, 3e38f);
  trainer.program().write(graph.find("out.bias"), 0, std::as_bytes(std::span(huge)));
  const std::string message = message_of<UserError>([&] { trainer.run({}); });
  EXPECT_NE(message.find("vocabulary_loss"), std::string::npos) << message;  // its logits
}

INSTANTIATE_TEST_SUITE_P(Nets, ImportedNet,
                         testing::Values("pictures", "words", "series", "sounds"),
                         [](const auto& net) { return std::string(net.param); });

}  // namespace
}  // namespace thimble
