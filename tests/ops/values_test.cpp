// Small cases with results worked out by hand: a reference that is wrong in the same way as its
// gradient would pass every other test.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "graph/builder.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

using List = std::vector<int64_t>;
using Numbers = std::vector<double>;

struct Given {
  TensorType type;
  Numbers numbers;
};

std::vector<Numbers> run(std::string_view op, const std::vector<Given>& given, Attrs attrs = {}) {
  Graph graph;
  Builder build(graph);
  std::vector<ValueId> inputs;
  for (const Given& g : given) inputs.push_back(build.input("x", g.type));
  const std::vector<ValueId> outputs = build.apply(op, inputs, std::move(attrs));
  Interpreter interpreter(graph);
  for (size_t i = 0; i < given.size(); ++i) {
    for (size_t e = 0; e < given[i].numbers.size(); ++e) {
      interpreter[inputs[i]].set(static_cast<int64_t>(e), given[i].numbers[e]);
    }
  }
  interpreter.run();
  std::vector<Numbers> results;
  for (const ValueId output : outputs) {
    Numbers& numbers = results.emplace_back();
    const Tensor& tensor = interpreter[output];
    for (int64_t e = 0; e < tensor.elements(); ++e) numbers.push_back(tensor.get(e));
  }
  return results;
}

TEST(OpValues, Arithmetic) {
  const Given a = {{{2, 2}}, {1, 2, 3, 4}}, b = {{{2}}, {10, 20}}, column = {{{2, 1}}, {10, 20}};
  EXPECT_EQ(run("add", {a, b})[0], (Numbers{11, 22, 13, 24}));
  EXPECT_EQ(run("add", {a, column})[0], (Numbers{11, 12, 23, 24}));
  EXPECT_EQ(run("sub", {b, a})[0], (Numbers{9, 18, 7, 16}));
  EXPECT_EQ(run("mul", {a, b})[0], (Numbers{10, 40, 30, 80}));
  EXPECT_EQ(run("scale", {a}, {{"factor", -2.0}})[0], (Numbers{-2, -4, -6, -8}));
}

TEST(OpValues, Rectifiers) {
  const Given x = {{{4}}, {-2, 0, 0.5, 3}};
  EXPECT_EQ(run("relu", {x})[0], (Numbers{0, 0, 0.5, 3}));
  EXPECT_EQ(run("leaky_relu", {x}, {{"slope", 0.25}})[0], (Numbers{-0.5, 0, 0.5, 3}));
  const Given dy = {{{4}}, {1, 2, 3, 4}};
  EXPECT_EQ(run("relu_backward", {x, dy})[0], (Numbers{0, 0, 3, 4}));
  EXPECT_EQ(run("leaky_relu_backward", {x, dy}, {{"slope", 0.5}})[0], (Numbers{0.5, 1, 3, 4}));
  const Given nan = {{{1}}, {std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_TRUE(std::isnan(run("relu", {nan})[0][0]));
}

TEST(OpValues, Pooling) {
  const Given x = {{{1, 3, 3, 1}}, {1, 2, 3, 4, 9, 6, 7, 8, 5}};
  const Attrs two = {{"kernel", int64_t{2}}, {"stride", int64_t{1}}};
  EXPECT_EQ(run("max_pool", {x}, two)[0], (Numbers{9, 9, 9, 9}));
  EXPECT_EQ(run("max_pool", {x}, two)[1], (Numbers{3, 2, 1, 0}));
  EXPECT_EQ(run("avg_pool", {x}, two)[0], (Numbers{4, 5, 7, 7}));
  const Attrs padded = {{"kernel", int64_t{2}}, {"stride", int64_t{2}}, {"pad", int64_t{1}}};
  // Windows at the border see the image only for the maximum, and zeros too for the mean.
  EXPECT_EQ(run("max_pool", {x}, padded)[0], (Numbers{1, 3, 7, 9}));
  EXPECT_EQ(run("max_pool", {x}, padded)[1], (Numbers{3, 3, 3, 0}));
  EXPECT_EQ(run("avg_pool", {x}, padded)[0], (Numbers{0.25, 1.25, 2.75, 7}));
  EXPECT_EQ(run("global_avg_pool", {x})[0], (Numbers{5}));
  const Given ties = {{{1, 2, 2, 1}}, {-1, -1, -1, -1}};
  EXPECT_EQ(run("max_pool", {ties}, {{"kernel", int64_t{2}}})[1], (Numbers{0}));
}

TEST(OpValues, Shapes) {
  const Given x = {{{2, 3}}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(run("transpose", {x}, {{"perm", List{1, 0}}})[0], (Numbers{1, 4, 2, 5, 3, 6}));
  const Attrs part = {{"axis", int64_t{1}}, {"begin", int64_t{1}}, {"end", int64_t{3}}};
  EXPECT_EQ(run("slice", {x}, part)[0], (Numbers{2, 3, 5, 6}));
  const Attrs whole = {{"axis", int64_t{1}}, {"begin", int64_t{1}}, {"extent", int64_t{4}}};
  const Given dy = {{{2, 2}}, {1, 2, 3, 4}};
  EXPECT_EQ(run("slice_backward", {dy}, whole)[0], (Numbers{0, 1, 2, 0, 0, 3, 4, 0}));
  EXPECT_EQ(run("concat", {x, dy}, {{"axis", int64_t{1}}})[0],
            (Numbers{1, 2, 3, 1, 2, 4, 5, 6, 3, 4}));
  EXPECT_EQ(run("broadcast_to", {{{{2, 1}}, {1, 2}}}, {{"shape", List{2, 2}}})[0],
            (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(run("fill", {}, {{"shape", List{2}}, {"value", 1.5}})[0], (Numbers{1.5, 1.5}));
}

TEST(OpValues, Reductions) {
  const Given x = {{{2, 3}}, {1, 2, 3, 4, 5, 9}};
  EXPECT_EQ(run("reduce", {x}, {{"axes", List{0}}})[0], (Numbers{5, 7, 12}));
  EXPECT_EQ(run("reduce", {x}, {{"axes", List{1}}, {"kind", "mean"}})[0], (Numbers{2, 6}));
  EXPECT_EQ(run("reduce", {x}, {{"axes", List{0, 1}}, {"kind", "max"}})[0], (Numbers{9}));
}

TEST(OpValues, Conversions) {
  const Given bytes = {{{1, 1, 2, 1}, DType::u8}, {0, 255}};
  const Given mean = {{{1}}, {127.5}}, inv_std = {{{1}}, {0.5}};
  EXPECT_EQ(run("normalize_image", {bytes, mean, inv_std})[0], (Numbers{-63.75, 63.75}));
  EXPECT_EQ(run("cast", {bytes}, {{"dtype", "bf16"}})[0], (Numbers{0, 255}));
  EXPECT_EQ(run("cast", {{{{2}}, {1.0 + 0x1p-12, 70000}}}, {{"dtype", "f16"}})[0],
            (Numbers{1, std::numeric_limits<double>::infinity()}));
}

TEST(OpErrors, BeginWithTheOpAndSayWhatIsWrong) {
  const Given image = {{{1, 4, 4, 1}}, {}}, flat = {{{6}}, {}}, bytes = {{{6}, DType::u8}, {}};
  const auto message = [](std::string_view op, const std::vector<Given>& given, Attrs attrs) {
    try {
      run(op, given, std::move(attrs));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("relu", {bytes}, {}), "[relu] wants a floating tensor, got u8[6]");
  EXPECT_EQ(message("add", {flat, bytes}, {}),
            "[add] wants two tensors of one dtype, got f32[6] and u8[6]");
  EXPECT_EQ(message("reshape", {flat}, {{"shape", List{4}}}),
            "[reshape] [6] has 6 elements, [4] has 4");
  EXPECT_EQ(message("transpose", {image}, {{"perm", List{0, 1, 1, 2}}}),
            "[transpose] perm must name each axis of [1,4,4,1] once; 1 is wrong");
  EXPECT_EQ(
      message("slice", {flat}, {{"axis", int64_t{0}}, {"begin", int64_t{4}}, {"end", int64_t{7}}}),
      "[slice] [4, 7) is no part of axis 0 of [6]");
  EXPECT_EQ(message("concat", {flat, image}, {{"axis", int64_t{0}}}),
            "[concat] f32[6] and f32[1,4,4,1] differ in more than axis 0");
  EXPECT_EQ(message("reduce", {flat}, {{"axes", List{1}}}),
            "[reduce] axes must name axes of [6] once each; 1 is wrong");
  EXPECT_EQ(message("max_pool", {image}, {{"kernel", int64_t{5}}}),
            "[max_pool] window 5x5 is larger than the padded image [1,4,4,1]");
  EXPECT_EQ(message("max_pool", {image}, {{"kernel", int64_t{2}}, {"pad", int64_t{2}}}),
            "[max_pool] pad 2 is more than half of kernel 2");
  EXPECT_EQ(message("broadcast_to", {flat}, {{"shape", List{1}}}),
            "[broadcast_to] [6] does not repeat to [1]");
  EXPECT_EQ(message("cast", {flat}, {{"dtype", "i32"}}), "[cast] goes to floating dtypes, not i32");
}

}  // namespace
}  // namespace thimble
