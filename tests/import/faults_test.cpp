// Networks with something that cannot be built: each fault is told once, and not what comes of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "../file_support.h"
#include "base/error.h"
#include "import/lowering.h"
#include "import/onnx/lower_onnx.h"

namespace thimble {
namespace {

int64_t lines(const std::string& message) { return std::ranges::count(message, '\n'); }

NetNode node(std::string op, std::vector<Operand> in, std::string out) {
  return {.op = std::move(op), .in = std::move(in), .out = {std::move(out)}};
}

TEST(Faults, AreToldWithoutWhatComesOfThem) {
  Net net;
  net.name = "net";
  net.inputs = {{.name = "x", .shape = {{1, true}, {8, false}}}};
  net.parameters = {{.name = "w", .shape = {8, 8}}, {.name = "vector", .shape = {8}}};
  net.nodes = {node("sort", {{"x"}}, "sorted"),
               node("linear", {{"sorted"}, {"w"}}, "y"),  // of what shape, nobody knows
               node("linear", {{"x"}, {"vector"}}, "z"),  // wrong by itself
               node("unique", {{"y"}}, "loss")};          // there is none, whatever it reads
  net.loss = "loss";
  const ModelOptions options = {.name = net.name, .batch = 4};
  const std::string message = message_of<UserError>([&] { Lowering(net, options).build(); });
  EXPECT_EQ(message,
            "'net' has what cannot be trained here:\n"
            "  sort: there is no such op here\n"
            "  linear: its weight has 1 axes, not 2\n"
            "  unique: there is no such op here");
}

// Names are whatever the file has.
TEST(Faults, QuoteNamesThatATerminalDoesNotObey) {
  Net net;
  net.name = "net";
  net.inputs = {{.name = "x", .shape = {{1, true}, {8, false}}}};
  net.nodes = {node("sort\x1b[2J\nforged", {{"x"}}, "loss")};
  net.loss = "loss";
  const ModelOptions options = {.name = net.name, .batch = 4};
  EXPECT_EQ(message_of<UserError>([&] { Lowering(net, options).build(); }),
            "'net' has what cannot be trained here:\n"
            "  sort\\x1b[2J\\nforged: there is no such op here");
}

// Of a node that is made of several, and of its readers.
TEST(Faults, OfOnnxAreToldOnce) {
  OnnxModel onnx;
  const auto tensor = [&](const std::string& name, const Shape& shape) {
    OnnxTensor made;
    made.name = name;
    made.shape = shape;
    made.numbers.assign(static_cast<size_t>(shape.elements()), 0.5);
    onnx.tensors[name] = made;
    onnx.order.push_back(name);
  };
  const auto add = [&](const std::string& op, std::vector<std::string> in, const std::string& out) {
    OnnxNode made;
    made.op = op;
    made.in = std::move(in);
    made.out = {out};
    onnx.nodes.push_back(made);
  };
  tensor("gamma", {7});
  tensor("beta", {8});
  tensor("w", {8, 8});
  tensor("b", {8});
  add("LayerNormalization", {"x", "gamma", "beta"}, "normed");
  add("Gemm", {"normed", "w", "b"}, "y");
  onnx.inputs = {{.name = "x", .dtype = DType::f32, .axes = {{}, {.extent = 8}}}};
  onnx.outputs = {{.name = "y"}};
  const ModelOptions options = {.name = "net.onnx", .batch = 4};
  const std::string message = message_of<UserError>([&] { build_onnx(onnx, options, {}); });
  EXPECT_NE(message.find("its scales are f32[7], not of 8 channels"), std::string::npos) << message;
  EXPECT_EQ(lines(message), 1) << message;
}

}  // namespace
}  // namespace thimble
