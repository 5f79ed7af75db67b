// Networks as transformers writes them, fused: how many nodes a layer has, and that they compute what
// they did. The files are of tests/torch/make_fused.py, two layers each, without weights.
#include "import/fused.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "autodiff/autodiff.h"
#include "file_support.h"
#include "graph/builder.h"
#include "import/imported_runs.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

Model build(const std::string& name, bool fused, DType storage = DType::f32) {
  ModelOptions options = {.name = kNets + "/fused/" + name + ".json", .batch = 2};
  if (!fused) options.name += ":fuse=off";
  options.storage = storage;
  return build_model(options);
}

// Nodes from one layer's attention to the next one's; of these, how many move nothing.
std::pair<int, int> nodes_of_layer(const Graph& graph) {
  int layers = 0, all = 0, views = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->name == "attention") ++layers;
    all += layers == 1 ? 1 : 0;
    views += layers == 1 && node.op->view ? 1 : 0;
  }
  EXPECT_EQ(layers, 2);
  return {all, views};
}

std::map<std::string_view, int> ops_of(const Graph& graph) {
  std::map<std::string_view, int> ops;
  for (const Node& node : graph.nodes) ++ops[node.op->name];
  return ops;
}

struct Row {
  std::string net;
  int before, after, views;  // nodes a layer, and of those that are left, how many move nothing
};

TEST(Fused, NodesOfALayer) {
  const std::vector<Row> table = {
      {"llama", 68, 15, 0},   {"qwen2", 71, 18, 0}, {"qwen3", 84, 21, 4},
      {"mistral", 68, 15, 0}, {"gemma", 68, 17, 0}, {"phi", 60, 33, 8},
      {"gpt2", 48, 28, 11},   {"bert", 26, 26, 8},  {"vit", 26, 26, 8},
  };
  for (const Row& row : table) {
    const auto before = nodes_of_layer(build(row.net, false).graph);
    const Graph graph = build(row.net, true).graph;
    const auto after = nodes_of_layer(graph);
    EXPECT_EQ(before.first, row.before) << row.net;
    EXPECT_EQ(after.first, row.after) << row.net << "\n" << print_graph(graph);
    EXPECT_EQ(after.second, row.views) << row.net;
  }
}

TEST(Fused, IsMadeOfTheOpsOfOurOwnNets) {
  for (const char* net : {"llama", "qwen2", "qwen3", "mistral", "gemma"}) {
    const auto ops = ops_of(build(net, true).graph);
    const bool head_norms = std::string(net) == "qwen3";
    EXPECT_EQ(ops.at("rms_norm"), head_norms ? 9 : 5) << net;
    EXPECT_EQ(ops.at("rotary"), 4) << net;
    EXPECT_EQ(ops.at("gated"), 2) << net;
    EXPECT_EQ(ops.at("vocabulary_loss"), 1) << net;
    for (const char* gone : {"reduce", "mul", "slice", "concat", "broadcast_to", "count_correct"}) {
      // Labels are moved by one place, which slices them.
      if (gone == std::string_view("slice") || gone == std::string_view("concat")) {
        EXPECT_LE(ops.contains(gone) ? ops.at(gone) : 0, 1) << net << ": " << gone;
      } else if (gone == std::string_view("mul")) {
        EXPECT_EQ(ops.at(gone), 1) << net;  // of the loss
      } else {
        EXPECT_FALSE(ops.contains(gone)) << net << ": " << gone;
      }
    }
  }
  EXPECT_EQ(ops_of(build("gpt2", true).graph).at("gelu"), 2);
  EXPECT_EQ(ops_of(build("gpt2", true).graph).at("bias_act"), 8);
}

// The loss, under "", and the gradient of every weight by its name.
std::map<std::string, Tensor> run(Model model) {
  Graph& graph = model.graph;
  std::vector<ValueId> weights;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    Value& value = graph.values[v];
    if (value.role == Role::weight) weights.push_back(make_id<ValueId>(v));
    const bool scale = value.name.find("norm") != std::string::npos;
    if (value.role == Role::weight) {
      value.init = {Init::Kind::normal, scale ? 0.5 : 0.2};
    }
    if (value.role == Role::frozen && is_floating(value.type.dtype)) {
      value.init = {Init::Kind::uniform, 1};
    }
  }
  Builder b(graph);
  const GradientRoot root = {model.loss, b.constant(1, {{1}})};
  const std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, weights);
  verify_graph(graph);
  Interpreter interpreter(graph, nullptr, 3);
  interpreter[model.loss_normalizer].set(0, 0.5);
  for (const Feed& feed : model.feeds) {
    Tensor& tensor = interpreter[feed.value];
    const bool whole = tensor.type().dtype == DType::i32;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.set(i, whole ? static_cast<double>(i * 7 % std::max<int64_t>(feed.limit, 1))
                          : std::sin(static_cast<double>(i)));
    }
  }
  interpreter.run();
  std::map<std::string, Tensor> made;
  made.emplace("", interpreter[model.loss]);
  for (size_t w = 0; w < weights.size(); ++w) {
    if (gradients[w].valid()) made.emplace(graph[weights[w]].name, interpreter[gradients[w]]);
  }
  return made;
}

// Sums of fp32 in another order: patterns by themselves agree to 1e-12 in double precision
// (tests/transform/fuse_test.cpp).
TEST(Fused, LossAndGradientsAreThoseOfTheFile) {
  for (const char* net : {"llama", "qwen3", "gemma", "phi", "gpt2", "bert", "vit"}) {
    const auto before = run(build(net, false)), after = run(build(net, true));
    ASSERT_EQ(before.size(), after.size()) << net;
    for (const auto& [name, wanted] : before) {
      const Tensor& got = after.at(name);
      const double largest = std::max(wanted.largest(), 1e-3);
      double apart = 0;
      for (int64_t i = 0; i < wanted.elements(); ++i) {
        apart = std::max(apart, std::abs(got.get(i) - wanted.get(i)));
      }
      EXPECT_LE(apart, 2e-5 * largest) << net << ": d " << name;
    }
  }
}

// Rows x vocabulary elements: what logits would be.
TEST(Fused, NoValueHoldsTheLogits) {
  constexpr int64_t kLogits = 2 * 16 * 64;
  for (const char* net : {"llama", "qwen2", "qwen3", "mistral", "gemma", "gpt2"}) {
    Recipe recipe;
    recipe.model.name = kNets + "/fused/" + net + ".json";
    recipe.model.batch = 2;
    const auto planned = std::get<PlannedTraining>(plan_training(recipe));
    const Graph& graph = planned.full().model.graph;
    for (const Value& value : graph.values) {
      EXPECT_FALSE(value.type.elements() == kLogits && value.type.shape.rank() > 1 &&
                   value.type.shape.back() == 64)
          << net << ": " << value.name << " is " << to_string(value.type);
    }
  }
}

// With 16 bits, norms and rotations read their inputs in them and nothing else is cast; scales stay
// in f32 under a master copy.
TEST(Fused, SixteenBitsRoundOnce) {
  for (const char* net : {"llama", "qwen3", "gemma", "gpt2"}) {
    const Graph graph = build(net, true, DType::bf16).graph;
    const auto f32 = ops_of(build(net, true).graph), bf16 = ops_of(graph);
    for (const char* op : {"rms_norm", "rotary", "gated", "gelu", "vocabulary_loss"}) {
      EXPECT_EQ(f32.contains(op) ? f32.at(op) : 0, bf16.contains(op) ? bf16.at(op) : 0)
          << net << ": " << op << "\n"
          << print_graph(graph);
    }
    for (const Node& node : graph.nodes) {
      if (node.op->name != "rms_norm" && node.op->name != "rotary") continue;
      EXPECT_EQ(graph[node.inputs[0]].type.dtype, DType::bf16) << net;
      EXPECT_EQ(graph[node.inputs[1]].type.dtype, DType::f32) << net;
    }
  }
}

}  // namespace
}  // namespace thimble
