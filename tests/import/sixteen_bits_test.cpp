// Imported networks with activations of 16 bits: every file trains, and sums over values stay in f32.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "import/lowering.h"
#include "imported_runs.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

struct Sixteen {
  const char* net;
  const char* kind;
  DType storage;
  bool master;
};

class SixteenBits : public testing::TestWithParam<Sixteen> {};

// Each of a few layers rounds by 2^-8 in bf16, and so do weights that are not kept in f32.
TEST_P(SixteenBits, HasTheLossesOfF32) {
  Recipe recipe = recipe_of(GetParam().net, GetParam().kind);
  const Ended wide = train(recipe);
  recipe.model.storage = GetParam().storage;
  recipe.model.master = GetParam().master;
  const Ended narrow = train(recipe);
  ASSERT_EQ(narrow.losses.size(), wide.losses.size());
  for (size_t i = 0; i < wide.losses.size(); ++i) {
    const double most = 8 * 0x1p-8 * std::max(1.0, wide.losses[i]);
    EXPECT_NEAR(narrow.losses[i], wide.losses[i], most) << "step " << i;
  }
}

std::vector<Sixteen> every_file() {
  std::vector<Sixteen> all;
  for (const auto& [net, kind] : {std::pair("pictures", ".json"),
                                  {"words", ".json"},
                                  {"series", ".json"},
                                  {"sounds", ".json"},
                                  {"pictures", ".onnx"},
                                  {"words", ".onnx"},
                                  {"norm_free", ".onnx"}}) {
    for (const DType storage : {DType::bf16, DType::f16}) {
      for (const bool master : {false, true}) all.push_back({net, kind, storage, master});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Files, SixteenBits, testing::ValuesIn(every_file()), [](const auto& one) {
  return fmt::format("{}_{}_{}{}", one.param.net, one.param.kind + 1, name_of(one.param.storage),
                     one.param.master ? "_master" : "");
});

NetNode node(std::string op, std::vector<Operand> in, std::string out, Extents shape,
             Attrs attrs = {}) {
  return {.op = std::move(op),
          .in = std::move(in),
          .out = {std::move(out)},
          .shapes = {std::move(shape)},
          .attrs = std::move(attrs)};
}

constexpr int64_t kRows = 4, kColumns = 64;

// y = gamma * (h * rsqrt(mean(h^2) + eps)) of h = 300 x, as a file has it that writes the norm out.
Net written_out_norm() {
  const Extents whole = {{1, true}, {kColumns, false}}, one = {{1, true}, {1, false}};
  const auto axes = [](std::vector<int64_t> list, int64_t keep) {
    return Attrs{{"axes", std::move(list)}, {"keep", keep}};
  };
  Net net;
  net.name = "norm";
  net.inputs = {{.name = "x", .dtype = DType::f32, .shape = whole}};
  net.parameters = {{.name = "gamma", .shape = {kColumns}}};
  net.nodes = {node("mul", {{"x"}, {"", 300.0}}, "h", whole),
               node("pow", {{"h"}}, "squares", whole, {{"exponent", 2.0}}),
               node("mean", {{"squares"}}, "variance", one, axes({1}, 1)),
               node("add", {{"variance"}, {"", 1e-6}}, "shifted", one),
               node("rsqrt", {{"shifted"}}, "rstd", one),
               node("mul", {{"h"}, {"rstd"}}, "normed", whole),
               node("mul", {{"gamma"}, {"normed"}}, "y", whole),
               node("mean", {{"y"}}, "loss", {}, axes({0, 1}, 0))};
  net.loss = "loss";
  net.outputs = {{"h", "h"}, {"rstd", "rstd"}, {"y", "y"}};
  return net;
}

Model built(const Net& net, DType storage) {
  const ModelOptions options = {.name = net.name, .batch = kRows, .storage = storage};
  return Lowering(net, options).build();
}

class WrittenOutNorm : public testing::TestWithParam<DType> {};

// 300 squared is beyond f16. With a scale of one, each result is one rounding from what it should be.
TEST_P(WrittenOutNorm, RoundsOnce) {
  const Net net = written_out_norm();
  const Model model = built(net, GetParam());
  EXPECT_EQ(model.graph[model.outputs[1].value].type.dtype, DType::f32);
  EXPECT_EQ(model.graph[model.outputs[2].value].type.dtype, GetParam());
  Interpreter run(model.graph);
  fill_tensor(run[model.graph.find("x")], {}, 3);
  fill_tensor(run[model.graph.find("gamma")], {.kind = Fill::Kind::ones}, 3);
  run.run();
  const Tensor &h = run[model.outputs[0].value], &y = run[model.outputs[2].value];
  const double unit = GetParam() == DType::bf16 ? 0x1p-8 : 0x1p-11;  // of a rounding
  for (int64_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < kColumns; ++c) squares += std::pow(h.get(r * kColumns + c), 2);
    const double rstd = 1 / std::sqrt(squares / kColumns + 1e-6);
    for (int64_t c = 0; c < kColumns; ++c) {
      const double exact = h.get(r * kColumns + c) * rstd;
      const double f32 = 0x1p-20 * std::abs(exact);  // that it is computed in
      EXPECT_NEAR(y.get(r * kColumns + c), exact, unit * std::abs(exact) + f32) << r << ' ' << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, WrittenOutNorm, testing::Values(DType::bf16, DType::f16),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST(WrittenOutNorm, IsWhatItWasInF32) {
  const Model model = built(written_out_norm(), DType::f32);
  std::vector<std::string_view> ops;
  for (const Node& made : model.graph.nodes) ops.push_back(made.op->name);
  const std::vector<std::string_view> expected = {"scale", "map",     "reduce",  "map", "map",
                                                  "mul",   "reshape", "reshape", "mul", "reduce",
                                                  "scale", "reshape", "mul"};
  EXPECT_EQ(ops, expected);
}

// -3.4e38 is beyond both types, and 0 times infinity is no number.
TEST_P(WrittenOutNorm, AMaskOfTheLargestNumberStaysFinite) {
  const Extents whole = {{1, true}, {kColumns, false}};
  Net net;
  net.name = "mask";
  net.inputs = {{.name = "x", .dtype = DType::f32, .shape = whole}};
  net.constants = {{.name = "mask", .shape = {1, kColumns}}};
  net.nodes = {node("relu", {{"x"}}, "h", whole), node("mul", {{"mask"}, {"h"}}, "masked", whole),
               node("mul", {{"h"}, {"", -3e38}}, "numbered", whole),
               node("add", {{"masked"}, {"numbered"}}, "y", whole),
               node("mean", {{"y"}}, "loss", {}, {{"axes", std::vector<int64_t>{0, 1}}})};
  net.loss = "loss";
  net.outputs = {{"masked", "masked"}, {"numbered", "numbered"}};
  const Model model = built(net, GetParam());
  Interpreter run(model.graph);
  fill_tensor(run[model.graph.find("x")], {.kind = Fill::Kind::ones}, 3);
  for (int64_t c = 0; c < kColumns; ++c) {
    run[model.graph.find("mask")].set(c, std::numeric_limits<float>::lowest());
  }
  run.run();
  for (const Output& output : model.outputs) {
    EXPECT_TRUE(std::isfinite(run[output.value].get(0))) << output.name;
    EXPECT_LT(run[output.value].get(0), -6e4) << output.name;
  }
}

// Weights that are kept in f32 are cast where they are read, so that no two layers' lie there at once.
TEST(Weights, AreCastWhereTheyAreRead) {
  Net net;
  net.name = "layers";
  const Extents whole = {{1, true}, {8, false}};
  net.inputs = {{.name = "x", .dtype = DType::f32, .shape = whole}};
  net.parameters = {{.name = "a", .shape = {8, 8}}, {.name = "b", .shape = {8, 8}}};
  net.nodes = {node("linear", {{"x"}, {"a"}}, "y", whole),
               node("linear", {{"y"}, {"b"}}, "z", whole),
               node("linear", {{"z"}, {"a"}}, "w", whole),
               node("mean", {{"w"}}, "loss", {}, {{"axes", std::vector<int64_t>{0, 1}}})};
  net.loss = "loss";
  const Model model =
      Lowering(net, {.name = "layers", .batch = kRows, .storage = DType::bf16, .master = true})
          .build();
  std::vector<std::string_view> ops;
  for (const Node& made : model.graph.nodes) ops.push_back(made.op->name);
  ops.resize(7);
  const std::vector<std::string_view> expected = {
      "cast", "cast", "matmul", "cast", "matmul", "matmul", "cast"};  // x a, b; to be summed
  EXPECT_EQ(ops, expected);
}

// A sum of more ones than 16 bits can count.
TEST(Sums, CountBeyondSixteenBits) {
  Net net;
  net.name = "count";
  net.inputs = {{.name = "x", .dtype = DType::f32, .shape = {{1, true}, {1000, false}}}};
  net.nodes = {node("relu", {{"x"}}, "ones", {{1, true}, {1000, false}}),
               node("sum", {{"ones"}}, "counts", {{1, true}}, {{"axes", std::vector<int64_t>{1}}}),
               node("add", {{"counts"}, {"", 1.0}}, "more", {{1, true}}),
               node("mean", {{"more"}}, "loss", {}, {{"axes", std::vector<int64_t>{0}}})};
  net.loss = "loss";
  const Model model = built(net, DType::bf16);
  Interpreter run(model.graph);
  fill_tensor(run[model.graph.find("x")], {.kind = Fill::Kind::ones}, 3);
  run[model.loss_normalizer].set(0, 1.0 / kRows);
  run.run();
  EXPECT_EQ(run[model.loss].get(0), 1001);
}

}  // namespace
}  // namespace thimble
