// ONNX files as they are published: axes that the caller gives, ops of all exporters, losses that stand
// before a final Softmax or Sigmoid, numbers in other files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../file_support.h"
#include "base/error.h"
#include "base/field.h"
#include "model/model.h"
#include "onnx_bytes.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

using Choices = std::vector<std::pair<std::string, std::string>>;

Model built(const std::string& path, const Choices& choices = {}, int64_t batch = 2,
            bool training = false) {
  ModelOptions options = {.name = path, .batch = batch, .training = training};
  Fields list;
  list_own_fields(options, list);
  const std::vector<Field> fields = std::move(list).take();
  for (const auto& [name, value] : choices) find_field(fields, name)->set(value);
  return build_model(options);
}

std::string refusal(const std::string& path, const Choices& choices = {}) {
  return message_of<UserError>([&] { built(path, choices); });
}

float number_of(int64_t i) { return std::sin(static_cast<float>(3 * i + 1)); }

std::vector<float> numbers(int64_t count) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i) made.push_back(number_of(i));
  return made;
}

// A graph behind a product with one, so that there is a weight, at work on x of `numbers`.
class AtWork {
 public:
  AtWork(OnnxGraphParts parts, const Wholes& x, int64_t opset = 17, const Choices& choices = {}) {
    parts.inputs.push_back(end("x", kFloat, x));
    parts.outputs.push_back(end("y", kFloat, {}));
    parts.tensors.push_back(floats("one", {1}, {1}));
    parts.nodes.insert(parts.nodes.begin(), onnx_node("Mul", {"x", "one"}, {"h"}));
    const std::string path = folder_ / "net.onnx";
    spill(path, parts.file(opset));
    Choices all = {{"loss", "mse"}};
    all.insert(all.end(), choices.begin(), choices.end());
    model_ = built(path, all, x[0]);
  }

  // Its output is that, in the order of the file's axes: the mean of squared differences says so.
  void expect(const std::vector<double>& expected) {
    const ValueId target = model_.graph.find("target");
    ASSERT_EQ(model_.graph[target].type.elements(), std::ssize(expected));
    for (const double off : {0.0, 0.5}) {
      Interpreter run = at_work();
      for (size_t i = 0; i < expected.size(); ++i) {
        run[target].set(static_cast<int64_t>(i), expected[i] + off);
      }
      run.run();
      // A handful of roundings of numbers up to about ten.
      EXPECT_NEAR(run[model_.loss].get(0), off * off, off == 0 ? 1e-11 : 1e-5);
    }
  }

  // As it lies.
  std::vector<double> output() {
    Interpreter run = at_work();
    run.run();
    std::vector<double> result;
    const ValueId made = model_.outputs.at(0).value;
    for (int64_t i = 0; i < model_.graph[made].type.elements(); ++i) {
      result.push_back(run[made].get(i));
    }
    return result;
  }

 private:
  Interpreter at_work() {
    Interpreter run(model_.graph);
    const ValueId input = model_.graph.find("x");
    for (int64_t i = 0; i < model_.graph[input].type.elements(); ++i)
      run[input].set(i, number_of(i));
    run[model_.graph.find("one")].set(0, 1);
    for (const auto& [name, values] : model_.first_numbers) {
      for (size_t i = 0; i < values.size(); ++i) {
        run[model_.graph.find(name)].set(static_cast<int64_t>(i), values[i]);
      }
    }
    run[model_.loss_normalizer].set(0, 1.0 / static_cast<double>(model_.options.batch));
    return run;
  }

  TemporaryFolder folder_;
  Model model_;
};

// A linear layer of three numbers to four, and whatever comes behind.
OnnxGraphParts classifier(const std::vector<Message>& behind, const std::string& output) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Gemm", {"x", "w", "b"}, {"scores"}, {attribute("transB", int64_t{1})})};
  parts.nodes.insert(parts.nodes.end(), behind.begin(), behind.end());
  parts.tensors = {floats("w", {4, 3}, numbers(12)), floats("b", {4}, numbers(4))};
  parts.inputs = {end("x", kFloat, {0, 3})};
  parts.outputs = {end(output, kFloat, {0, 4})};
  return parts;
}

double loss_of(const std::string& path, const Choices& choices, DType target) {
  const Model model = built(path, choices);
  Interpreter run(model.graph);
  const auto set = [&](const char* name) {
    const ValueId value = model.graph.find(name);
    for (int64_t i = 0; i < model.graph[value].type.elements(); ++i) {
      run[value].set(i, number_of(i));
    }
  };
  set("x"), set("w"), set("b");
  const ValueId labels = model.graph.find("target");
  EXPECT_EQ(model.graph[labels].type.dtype, target);
  for (int64_t i = 0; i < model.graph[labels].type.elements(); ++i) {
    run[labels].set(i, static_cast<double>(target == DType::i32 ? 1 + i : i % 2));
  }
  run[model.loss_normalizer].set(0, 0.5);
  run.run();
  return run[model.loss].get(0);
}

// -------- Axes

TEST(PublishedAxes, AreGivenByTheCaller) {
  const TemporaryFolder folder;
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Conv", {"x", "w"}, {"y"}, {attribute("pads", Wholes{1, 1, 1, 1})})};
  parts.tensors = {floats("w", {5, 3, 3, 3}, numbers(135))};
  parts.inputs = {end("x", kFloat, {0, 3, 0, 0}), end("w", kFloat, {5, 3, 3, 3})};
  parts.outputs = {end("y", kFloat, {})};
  const std::string path = folder / "net.onnx";
  spill(path, parts.file());
  const Model model = built(path, {{"shape", "x=4,3,8,16"}, {"loss", "mse"}}, 0);
  EXPECT_EQ(model.options.batch, 4);
  EXPECT_EQ(model.graph[model.graph.find("x")].type.shape, Shape({4, 3, 8, 16}));
  EXPECT_EQ(model.graph[model.graph.find("target")].type.shape, Shape({4, 5, 8, 16}));
  const Model other = built(path, {{"shape", "x=rows,3,8,16"}, {"loss", "mse"}}, 7);
  EXPECT_EQ(other.graph[other.graph.find("x")].type.shape, Shape({7, 3, 8, 16}));
  const auto says = [&](const std::string& shape, const char* what) {
    const std::string said = refusal(path, {{"shape", shape}, {"loss", "mse"}});
    EXPECT_NE(said.find(what), std::string::npos) << shape << ": " << said;
  };
  EXPECT_NE(refusal(path).find("say --shape x=rows,3,?,?"), std::string::npos) << refusal(path);
  says("z=4,3,8,16", "its inputs are x");
  says("x=4,3,8", "3 axes, and the file 4");
  says("x=4,5,8,16", "an extent of 5, and the file one of 3");
  says("x=4,3,8,16,x=4,3,8,16", "names 'x' twice");
  says("x=4,3,rows,rows", "two axes of rows");
  says("x=4,3,-8,16", "'-8' is no extent");
  says("x=4,3,8,99999999999999999999", "is no extent");
  says("x=4,3,1000000000000,1000000000000", "net.onnx");
  says("4,3,8,16", "--shape wants x=4,3,48,320");
}

// A state [2,N,3] whose rows go by the name of those of x.
TEST(PublishedAxes, RowsAreFoundWhereverTheyAre) {
  const TemporaryFolder folder;
  OnnxGraphParts parts = classifier(
      {onnx_node("ReduceSum", {"state", "axes"}, {"sum"}, {attribute("keepdims", int64_t{0})}),
       onnx_node("Concat", {"scores", "sum"}, {"y"}, {attribute("axis", int64_t{1})})},
      "y");
  parts.tensors.push_back(wholes("axes", {1}, {0}));
  parts.inputs.push_back(end("state", kFloat, {2, 0, 3}));
  const std::string path = folder / "net.onnx";
  spill(path, parts.file());
  const Model model = built(path, {{"loss", "mse"}}, 5);
  EXPECT_EQ(model.feed("state").row_axis, 1);
  EXPECT_EQ(model.graph[model.feed("state").value].type.shape, Shape({2, 5, 3}));
  const Model fixed = built(path, {{"loss", "mse"}, {"fixed", "state=0.5"}}, 5);
  EXPECT_EQ(fixed.feeds.size(), 2U);  // x and the target
}

TEST(PublishedInputs, OfOtherTypesAreRefusedByName) {
  const TemporaryFolder folder;
  OnnxGraphParts parts = classifier({onnx_node("Mul", {"scores", "words"}, {"y"})}, "y");
  parts.inputs.push_back(end("words", kString, {0, 4}));
  const std::string path = folder / "net.onnx";
  spill(path, parts.file());
  EXPECT_NE(refusal(path).find("its input 'words' is of string"), std::string::npos)
      << refusal(path);
}

// -------- Ops

TEST(PublishedOps, HardSigmoidHasAnySlope) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("HardSigmoid", {"h"}, {"y"}, {attribute("alpha", 0.75)})};
  std::vector<double> expected;
  for (int64_t i = 0; i < 12; ++i) {
    expected.push_back(std::clamp(0.75 * number_of(i) + 0.5, 0.0, 1.0));
  }
  AtWork(parts, {2, 6}).expect(expected);
}

// Windows of 2 by 3, one more row in front, two columns behind, none of it counted.
TEST(PublishedOps, PoolingTakesWindowsOfAnyShape) {
  for (const bool largest : {false, true}) {
    OnnxGraphParts parts;
    parts.nodes = {
        onnx_node(largest ? "MaxPool" : "AveragePool", {"h"}, {"y"},
                  {attribute("kernel_shape", Wholes{2, 3}), attribute("strides", Wholes{1, 2}),
                   attribute("pads", Wholes{1, 0, 0, 2})})};
    std::vector<double> expected;
    for (int64_t plane = 0; plane < 4; ++plane) {
      for (int64_t row = 0; row < 4; ++row) {
        for (int64_t column = 0; column < 3; ++column) {
          double sum = 0, top = -INFINITY;
          int count = 0;
          for (int64_t r = row - 1; r <= row; ++r) {
            for (int64_t c = 2 * column; c < 2 * column + 3; ++c) {
              if (r < 0 || c >= 5) continue;
              const double one = number_of(plane * 20 + r * 5 + c);
              sum += one, top = std::max(top, one), ++count;
            }
          }
          expected.push_back(largest ? top : sum / count);
        }
      }
    }
    AtWork(parts, {2, 2, 4, 5}).expect(expected);
  }
}

TEST(PublishedOps, PaddingDiffersOnBothSides) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Pad", {"h", "pads", "value"}, {"wide"}),
                 onnx_node("Pad", {"wide", "mirror"}, {"y"}, {attribute("mode", "reflect")})};
  parts.tensors = {wholes("pads", {4}, {0, 1, 0, 2}), floats("value", {1}, {7}),
                   wholes("mirror", {4}, {0, 2, 0, 0})};
  std::vector<double> expected;
  for (int64_t row = 0; row < 2; ++row) {
    const double a = number_of(2 * row), b = number_of(2 * row + 1);
    for (const double one : {b, a, 7.0, a, b, 7.0, 7.0}) expected.push_back(one);
  }
  AtWork(parts, {2, 2}).expect(expected);
}

TEST(PublishedOps, ConvolutionsPadOtherwiseInFrontThanBehind) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Shape", {"h"}, {"shape"}),
                 onnx_node("Conv", {"h", "turned"}, {"y"},
                           {attribute("auto_pad", "SAME_UPPER"), attribute("strides", Wholes{2})})};
  // Its weight is made late, of another order.
  parts.nodes.insert(parts.nodes.begin(), onnx_node("Transpose", {"w"}, {"turned"},
                                                    {attribute("perm", Wholes{2, 1, 0})}));
  parts.tensors = {floats("w", {3, 2, 1}, {1, 2, 4, 8, 16, 32})};
  const TemporaryFolder folder;
  parts.inputs.push_back(end("h", kFloat, {1, 2, 4}));
  parts.outputs.push_back(end("y", kFloat, {}));
  const std::string path = folder / "net.onnx";
  spill(path, parts.file());
  const Model model = built(path, {{"loss", "mse"}}, 1);
  Interpreter run(model.graph);
  const ValueId x = model.graph.find("h"), w = model.graph.find("w");
  const std::vector<double> weights = {1, 2, 4, 8, 16, 32};
  for (int64_t i = 0; i < 8; ++i) run[x].set(i, static_cast<double>(i));
  for (int64_t i = 0; i < 6; ++i) run[w].set(i, weights[static_cast<size_t>(i)]);
  run.run();
  // Four numbers by steps of two: one number behind, none in front. Place k of channel c: w[k][c].
  const Tensor& y = run[model.outputs[0].value];
  for (int64_t at = 0; at < 2; ++at) {
    double sum = 0;
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t k = 0; k < 3; ++k) {
        const int64_t from = 2 * at + k;
        if (from < 4)
          sum += weights[static_cast<size_t>(2 * k + c)] * static_cast<double>(4 * c + from);
      }
    }
    EXPECT_EQ(y.get(at), sum);
  }
}

// Up to opset 12 a Softmax goes over all axes from its own on.
TEST(PublishedOps, SoftmaxMeansWhatItsOpsetSays) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Softmax", {"h"}, {"s"}, {attribute("axis", int64_t{1})}),
                 onnx_node("Neg", {"s"}, {"y"})};
  for (const int64_t opset : {12, 13}) {
    std::vector<double> expected;
    for (int64_t i = 0; i < 12; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < 12; ++k) {
        const bool same = k / 6 == i / 6 && (opset == 12 || k % 3 == i % 3);
        if (same) sum += std::exp(number_of(k));
      }
      expected.push_back(-std::exp(number_of(i)) / sum);
    }
    AtWork(parts, {2, 2, 3}, opset).expect(expected);
  }
}

TEST(PublishedOps, PlacesOfAnyAxisAreGathered) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Gather", {"h", "ids"}, {"y"}, {attribute("axis", int64_t{1})})};
  parts.tensors = {wholes("ids", {3}, {2, -3, 2})};
  std::vector<double> expected;
  for (int64_t row = 0; row < 2; ++row) {
    for (const int64_t at : {2, 0, 2}) {
      for (int64_t k = 0; k < 2; ++k) expected.push_back(number_of(row * 6 + at * 2 + k));
    }
  }
  AtWork(parts, {2, 3, 2}).expect(expected);
}

TEST(PublishedOps, WhatIsChosenByNumbersIsChosenAsItRuns) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Greater", {"h", "bound"}, {"above"}),
                 onnx_node("Where", {"above", "h", "far"}, {"y"})};
  parts.tensors = {floats("bound", {}, {0.25}), floats("far", {}, {-INFINITY})};
  const std::vector<double> made = AtWork(parts, {2, 4}).output();
  for (int64_t i = 0; i < 8; ++i) {
    const double x = number_of(i), y = made[static_cast<size_t>(i)];
    if (x > 0.25) {
      EXPECT_EQ(y, number_of(i));
    } else {
      EXPECT_LT(y, -1e38);
    }
  }
}

TEST(PublishedOps, ResizingTakesEveryWayOfCounting) {
  OnnxGraphParts parts;
  parts.nodes = {onnx_node(
      "Resize", {"h", "", "scales"}, {"y"},
      {attribute("mode", "nearest"), attribute("coordinate_transformation_mode", "asymmetric"),
       attribute("nearest_mode", "ceil")})};
  parts.tensors = {floats("scales", {4}, {1, 1, 1, 2})};
  std::vector<double> expected;
  for (int64_t row = 0; row < 2; ++row) {
    for (const int64_t at : {0, 1, 1, 2, 2, 2}) expected.push_back(number_of(row * 3 + at));
  }
  AtWork(parts, {2, 1, 1, 3}).expect(expected);
}

// -------- Branches

TEST(PublishedBranches, AreTakenWhereTheirConditionIsKnown) {
  OnnxGraphParts then, otherwise, parts;
  then.nodes = {onnx_node("Mul", {"h", "factor"}, {"made"})};
  then.tensors = {floats("factor", {}, {3})};
  then.outputs = {end("made", kFloat, {})};
  otherwise.nodes = {onnx_node("NonZero", {"h"}, {"made"})};  // which cannot be built
  otherwise.outputs = {end("made", kFloat, {})};
  parts.nodes = {onnx_node("Equal", {"rate", "wanted"}, {"is"}),
                 onnx_node("If", {"is"}, {"y"},
                           {graph_attribute("then_branch", then.graph()),
                            graph_attribute("else_branch", otherwise.graph())})};
  parts.tensors = {wholes("wanted", {}, {16000})};
  parts.inputs = {end("rate", kInt64, {})};
  std::vector<double> expected;
  for (int64_t i = 0; i < 6; ++i) expected.push_back(3 * number_of(i));
  AtWork(parts, {2, 3}, 17, {{"fixed", "rate=16000"}}).expect(expected);
  const std::string other = message_of<UserError>([&] {
    AtWork(parts, {2, 3}, 17, {{"fixed", "rate=8000"}});
  });
  EXPECT_NE(other.find("NonZero: there is no such op here"), std::string::npos) << other;
  const std::string open = message_of<UserError>([&] { AtWork(parts, {2, 3}); });
  EXPECT_NE(open.find("--fixed rate=NUMBER"), std::string::npos) << open;
}

// -------- Losses

// The same bits as of the graph that ends in logits.
TEST(PublishedLosses, StandBeforeASoftmax) {
  const TemporaryFolder folder;
  const std::string logits = folder / "logits.onnx", shares = folder / "shares.onnx";
  spill(logits, classifier({}, "scores").file());
  spill(shares,
        classifier({onnx_node("Softmax", {"scores"}, {"p"}), onnx_node("Identity", {"p"}, {"y"})},
                   "y")
            .file());
  const double expected = loss_of(logits, {}, DType::i32);
  EXPECT_EQ(loss_of(shares, {}, DType::i32), expected);
  EXPECT_EQ(loss_of(shares, {{"loss", "cross_entropy"}}, DType::i32), expected);
  EXPECT_NE(refusal(shares, {{"loss", "bce"}}).find("choose --loss cross_entropy"),
            std::string::npos);
}

TEST(PublishedLosses, StandBeforeASigmoid) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  spill(path, classifier({onnx_node("Sigmoid", {"scores"}, {"p"})}, "p").file());
  double bce = 0, mse = 0, l1 = 0, dice = 0;
  for (int64_t row = 0; row < 2; ++row) {
    double both = 0, either = 0;
    for (int64_t k = 0; k < 4; ++k) {
      double score = number_of(k);
      for (int64_t c = 0; c < 3; ++c) score += number_of(3 * row + c) * number_of(3 * k + c);
      const double p = 1 / (1 + std::exp(-score)), t = static_cast<double>((4 * row + k) % 2);
      bce -= (t * std::log(p) + (1 - t) * std::log(1 - p)) / 8;
      mse += (p - t) * (p - t) / 8;
      l1 += std::abs(p - t) / 8;
      both += p * t, either += p + t;
    }
    dice += (1 - (2 * both + 1) / (either + 1)) / 2;
  }
  constexpr double kRounding = 1e-6;  // sums of eight numbers of about one
  EXPECT_NEAR(loss_of(path, {}, DType::f32), bce, kRounding);
  EXPECT_NEAR(loss_of(path, {{"loss", "bce"}}, DType::f32), bce, kRounding);
  EXPECT_NEAR(loss_of(path, {{"loss", "mse"}}, DType::f32), mse, kRounding);
  EXPECT_NEAR(loss_of(path, {{"loss", "l1"}}, DType::f32), l1, kRounding);
  EXPECT_NEAR(loss_of(path, {{"loss", "dice"}}, DType::f32), dice, kRounding);
  EXPECT_NE(refusal(path, {{"loss", "cross_entropy"}}).find("choose --loss bce"),
            std::string::npos);
  EXPECT_NE(refusal(path, {{"loss-of", "scores"}}).find("its outputs are p"), std::string::npos);
}

// -------- Weights

// Paddle writes weights as constants; statistics that are one tensor with a scale are their own.
TEST(PublishedWeights, AreTensorsOfTheirOwn) {
  const TemporaryFolder folder;
  OnnxGraphParts parts;
  parts.nodes = {onnx_node("Constant", {}, {"filter"},
                           {tensor_attribute("value", floats("", {2, 3, 1, 1}, numbers(6)))}),
                 onnx_node("Constant", {}, {"shift"},
                           {tensor_attribute("value", floats("", {1, 2, 1, 1}, numbers(2)))}),
                 onnx_node("Identity", {"ones"}, {"scale"}),
                 onnx_node("Conv", {"x", "filter"}, {"c"}),
                 onnx_node("BatchNormalization", {"c", "scale", "zeros", "zeros", "ones"}, {"n"}),
                 onnx_node("Add", {"n", "shift"}, {"y"})};
  parts.tensors = {floats("ones", {2}, {1, 1}), floats("zeros", {2}, {0, 0})};
  parts.inputs = {end("x", kFloat, {0, 3, 2, 2})};
  parts.outputs = {end("y", kFloat, {})};
  const std::string path = folder / "net.onnx";
  spill(path, parts.file(11));
  const Model model = built(path, {{"loss", "mse"}}, 2, true);
  const auto role_of = [&](const char* name) { return model.graph[model.graph.find(name)].role; };
  for (const char* name : {"filter", "shift", "ones", "zeros"}) {
    EXPECT_EQ(role_of(name), Role::weight) << name;
  }
  EXPECT_EQ(role_of("n.running_mean"), Role::statistic);
  EXPECT_EQ(role_of("n.running_var"), Role::statistic);
  const auto uses = [](const Model& of, std::string_view op) {
    return std::ranges::any_of(of.graph.nodes,
                               [&](const Node& node) { return node.op->name == op; });
  };
  EXPECT_TRUE(uses(model, "batch_norm_stats"));
  EXPECT_FALSE(
      uses(built(path, {{"loss", "mse"}, {"norms", "frozen"}}, 2, true), "batch_norm_stats"));
}

TEST(PublishedWeights, MayLieInFilesBeside) {
  const TemporaryFolder folder, elsewhere;
  const std::string path = folder / "net.onnx";
  spill(folder / "weights.bin", "head" + raw_of(numbers(12)));
  spill(elsewhere / "weights.bin", raw_of(numbers(12)));
  const auto with = [&](std::string_view file, int64_t offset, int64_t length) {
    OnnxGraphParts parts = classifier({}, "scores");
    parts.tensors[0] = tensor_beside("w", {4, 3}, file, offset, length);
    spill(path, parts.file());
    return refusal(path);
  };
  EXPECT_EQ(with("weights.bin", 4, 48), "");
  EXPECT_NE(with("weights.bin", 8, 48).find("has 52 bytes"), std::string::npos);
  EXPECT_NE(with("weights.bin", 4, 40).find("has 40 bytes"), std::string::npos);
  EXPECT_NE(with("nowhere.bin", 0, 48).find("nowhere.bin"), std::string::npos);
  const char* const outside = "which is not in the folder of the file";
  EXPECT_NE(with("../weights.bin", 0, 48).find(outside), std::string::npos);
  EXPECT_NE(with("/etc/passwd", 0, 48).find(outside), std::string::npos);
  std::filesystem::create_symlink(elsewhere / "weights.bin", folder / "link.bin");
  EXPECT_NE(with("link.bin", 0, 48).find(outside), std::string::npos);
}

}  // namespace
}  // namespace thimble
