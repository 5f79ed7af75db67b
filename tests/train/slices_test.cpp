// Rows that go through a translator in slices, layer by layer: the same maths as all at once, in less
// memory.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "select/choose.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

std::string translator(int64_t slices) {
  return "dynamicconv:width=16,heads=2,encoder=2,decoder=2,kernel=7,length=9,attention-dropout=0,"
         "kernel-dropout=0,source-vocabulary=13,target-vocabulary=11,slices=" +
         std::to_string(slices);
}

// Results of a step of five rows, and the weights behind it, by the plain kernels.
std::map<std::string, std::vector<double>> step_of(int64_t slices) {
  const TrainingGraph training =
      make_training_graph({.name = translator(slices), .batch = 5}, parse_optimizer("sgd"));
  const Model& model = training.model;
  Interpreter run(model.graph, nullptr, 3);
  for (const Feed& feed : model.feeds) {
    Tensor& tensor = run[feed.value];
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.set(i, static_cast<double>(feed.limit > 0 ? i * 7 % feed.limit : 1 + i % 9));
    }
  }
  run[model.loss_normalizer].set(0, 0.02);
  run[training.scalars.learning_rate].set(0, 0.5);
  run.run();
  std::map<std::string, std::vector<double>> all;
  const auto add = [&](const std::string& name, ValueId value) {
    for (int64_t i = 0; i < run[value].elements(); ++i) all[name].push_back(run[value].get(i));
  };
  for (size_t r = 0; r < model.graph.results.size(); ++r) {
    add("result " + std::to_string(r), model.graph.results[r]);
  }
  for (const Node& node : model.graph.nodes) {
    if (node.op->name == "update") add(model.graph[node.inputs[0]].name, node.outputs[0]);
  }
  return all;
}

TEST(Slices, AddUpToTheBatch) {
  const auto whole = step_of(1);
  ASSERT_GT(whole.size(), 50u);
  for (const int64_t slices : {2, 3, 5}) {
    const auto sliced = step_of(slices);
    ASSERT_EQ(sliced.size(), whole.size());
    for (const auto& [name, numbers] : whole) {
      SCOPED_TRACE(name);
      const std::vector<double>& others = sliced.at(name);
      ASSERT_EQ(others.size(), numbers.size());
      for (size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_NEAR(others[i], numbers[i], 1e-5 * std::max(1.0, std::abs(numbers[i])));
      }
    }
  }
}

// A row a slice is as far as it goes; and who does not train has no slices.
TEST(Slices, AreNoMoreThanRows) {
  const auto nodes = [](int64_t slices, bool training) {
    return build_model({.name = translator(slices), .batch = 5, .training = training})
        .graph.nodes.size();
  };
  EXPECT_LT(nodes(4, true), nodes(5, true));
  EXPECT_EQ(nodes(5, true), nodes(400, true));
  EXPECT_EQ(nodes(4, false), nodes(1, false));
}

// Beside weights and state: what passes between layers, and what is inside of one.
TEST(Slices, TakeLessThanAllRowsAtOnce) {
  const auto least = [](int64_t slices) {
    Recipe recipe;
    recipe.model = {.name =
                        "dynamicconv:width=128,encoder=3,decoder=2,length=32,source-vocabulary=100,"
                        "target-vocabulary=100,slices=" +
                        std::to_string(slices),
                    .batch = 40};
    recipe.optimizer = parse_optimizer("adafactor");
    recipe.device = "null";
    recipe.planner = "optimal";
    recipe.memory = kLeastMemory;
    const auto planned = std::get<PlannedTraining>(plan_training(recipe));
    int64_t persistent = 0;
    for (const Value& value : planned.graph().values) {
      if (!value.producer.valid() && is_persistent(value.role)) {
        persistent += value.type.bytes().count;
      }
    }
    return planned.plan().arena.count - persistent;
  };
  const int64_t whole = least(1), sliced = least(8);
  EXPECT_LT(sliced, whole * 7 / 10) << whole << " whole";
}

}  // namespace
}  // namespace thimble
