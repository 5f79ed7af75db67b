// Adapters beside linear layers, and frozen matrices in few bits: on a small net with a tied head, by
// the interpreter.
#include "transform/fine_tuning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autodiff/autodiff.h"
#include "base/error.h"
#include "base/nf4.h"
#include "graph/builder.h"
#include "support/interpreter.h"
#include "transform/adapt.h"
#include "transform/code_frozen.h"

namespace thimble {
namespace {

constexpr int64_t kWords = 11, kWidth = 64, kInner = 70, kRows = 5;
const Init kDrawn = {Init::Kind::uniform, 0.2};

// embed -> up (matmul) -> relu -> down (affine, added to what was embedded) -> the table again ->
// loss.
struct Net {
  explicit Net(Role role = Role::weight) {
    const auto weight = [&](const char* name, Shape shape) {
      const ValueId value = b.weight(name, {shape}, kDrawn);
      graph[value].role = role;
      return value;
    };
    tokens = b.input("tokens", {{kRows}, DType::i32});
    targets = b.input("targets", {{kRows}, DType::i32});
    one = b.constant(1, {{1}});
    table = weight("embed.weight", {kWords, kWidth});
    up = weight("block.up.weight", {kInner, kWidth});
    down = weight("block.down.weight", {kWidth, kInner});
    bias = weight("block.down.bias", {kWidth});
    x = b.op("embed", {table, tokens}, {{"scale", 2.0}});
    const Attrs turned = {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}};
    inner = b.op("relu", {b.op("matmul", {x, up}, turned)});
    out = b.op("affine", {inner, down, bias, x});
    loss = b.apply("vocabulary_loss", {out, table, targets, one})[0];
    graph.results = {loss};
  }

  // The loss, and what is asked for.
  double run(const Graph& of, const std::function<void(Interpreter&)>& set = {}) const {
    Interpreter interpreter(of);
    for (int64_t i = 0; i < kRows; ++i) {
      interpreter[tokens].set(i, static_cast<double>(i * 3 % kWords));
      interpreter[targets].set(i, static_cast<double>(i));
    }
    if (set) set(interpreter);
    interpreter.run();
    return interpreter[loss].get(0);
  }

  Graph graph;
  Builder b{graph};
  ValueId tokens, targets, one, table, up, down, bias, x, inner, out, loss;
};

TEST(Adapters, BeginWhereTheNetIsAndAreAllThatIsTrained) {
  Net net;
  const double before = net.run(net.graph);
  ValueId rng;
  adapt(net.graph, {.rank = 4}, rng);
  verify_graph(net.graph);
  EXPECT_FALSE(rng.valid());
  EXPECT_EQ(net.run(net.graph), before);
  std::vector<std::string> trained;
  for (const Value& value : net.graph.values) {
    if (value.role == Role::weight) trained.push_back(value.name);
  }
  const std::vector<std::string> expected = {"block.up.lora_A.weight", "block.up.lora_B.weight",
                                             "block.down.lora_A.weight",
                                             "block.down.lora_B.weight"};
  EXPECT_EQ(trained, expected);
  ASSERT_EQ(find_adapters(net.graph).size(), 2u);
  EXPECT_EQ(find_adapters(net.graph)[1].weight, net.down);
}

// y = x (W + s B A)': the weights with the adapters' product added give the same loss, but for sums in
// another order.
TEST(Adapters, AreWhatTheyAddToTheWeights) {
  const Net plain;
  Net net;
  ValueId rng;
  const AdapterSpec spec = {.rank = 3, .alpha = 12, .rank_stabilised = true};
  adapt(net.graph, spec, rng);
  const std::vector<Adapter> adapters = find_adapters(net.graph);
  Interpreter first(net.graph);
  for (const Adapter& adapter : adapters) fill_tensor(first[adapter.b], {}, 7);
  const double adapted = net.run(net.graph, [&](Interpreter& it) {
    for (const Adapter& adapter : adapters) it[adapter.b] = first[adapter.b];
  });
  const double merged = plain.run(plain.graph, [&](Interpreter& it) {
    for (const Adapter& adapter : adapters) {
      const Tensor &a = first[adapter.a], &b = first[adapter.b];
      Tensor& w = it[adapter.weight];
      const int64_t rows = w.type().shape[0], columns = w.type().shape[1];
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (int64_t k = 0; k < 3; ++k) sum += b.get(r * 3 + k) * a.get(k * columns + c);
          w.set(r * columns + c, w.get(r * columns + c) + spec.scale() * sum);
        }
      }
    }
  });
  EXPECT_NE(adapted, plain.run(plain.graph));
  EXPECT_NEAR(adapted, merged, 1e-4 * std::abs(merged));  // sums of f32 in another order
}

// Nothing of a frozen weight's size is made on the way back.
TEST(Adapters, FrozenWeightsHaveNoGradient) {
  Net net;
  ValueId rng;
  adapt(net.graph, {.rank = 4, .targets = "up"}, rng);
  std::vector<ValueId> trained;
  for (size_t v = 0; v < net.graph.values.size(); ++v) {
    if (net.graph.values[v].role == Role::weight) trained.push_back(make_id<ValueId>(v));
  }
  ASSERT_EQ(trained.size(), 2u);
  const size_t forward = net.graph.values.size();
  const GradientRoot root = {net.loss, net.b.constant(1, {{1}})};
  add_gradients(net.graph, {&root, 1}, trained);
  verify_graph(net.graph);
  for (size_t v = forward; v < net.graph.values.size(); ++v) {
    for (const ValueId frozen : {net.table, net.up, net.down}) {
      EXPECT_NE(net.graph.values[v].type, net.graph[frozen].type) << net.graph.values[v].name;
    }
  }
}

TEST(Adapters, RefuseTargetsThatMatchNothing) {
  Net net;
  ValueId rng;
  try {
    adapt(net.graph, {.rank = 4, .targets = "q_proj+v_proj"}, rng);
    ADD_FAILURE() << "adapted nothing";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("match no linear layer"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("block.down, block.up"), std::string::npos);
  }
}

TEST(Adapters, AreSpeltAsTheyAreRead) {
  const AdapterSpec spec = parse_adapters("rank=8,alpha=4,targets=q_proj+v_proj,dropout=0.1,rs");
  EXPECT_EQ(spec.rank, 8);
  EXPECT_EQ(spec.targets, "q_proj+v_proj");
  EXPECT_DOUBLE_EQ(spec.scale(), 4 / std::sqrt(8.0));
  EXPECT_EQ(parse_adapters(to_string(spec)), spec);
  EXPECT_EQ(to_string(AdapterSpec{}), "none");
  for (const char* wrong : {"alpha=2", "rank=0", "rank=x", "rank=4,depth=2", "rank=4,dora"}) {
    EXPECT_THROW(parse_adapters(wrong), UserError) << wrong;
  }
}

// The same loss as with the decoded numbers in f32, to the order of sums.
TEST(CodedWeights, AreReadAsTheNumbersThatTheyStandFor) {
  for (const CodedFormat format :
       {CodedFormat::bf16, CodedFormat::f16, CodedFormat::int8, CodedFormat::nf4}) {
    SCOPED_TRACE(name_of(format));
    const Net plain(Role::frozen);
    Net net(Role::frozen);
    code_frozen(net.graph, format);
    verify_graph(net.graph);
    Interpreter drawn(net.graph);
    const std::vector<CodedWeight> coded = find_coded_weights(net.graph);
    const bool few = format == CodedFormat::int8 || format == CodedFormat::nf4;
    ASSERT_EQ(coded.size(), few ? 2u : 0u);
    for (const CodedWeight& weight : coded) {
      fill_tensor(drawn[weight.values[0]], {Fill::Kind::bytes}, 3);
      for (size_t i = 1; i < weight.values.size(); ++i) {
        const bool codes = net.graph[weight.values[i]].type.dtype == DType::u8;
        fill_tensor(drawn[weight.values[i]],
                    codes ? Fill{Fill::Kind::bytes} : Fill{Fill::Kind::uniform, 0.05, 0.1}, 5 + i);
      }
    }
    const double loss = net.run(net.graph, [&](Interpreter& it) {
      for (const CodedWeight& weight : coded) {
        for (const ValueId value : weight.values) it[value] = drawn[value];
      }
    });
    const double expected = plain.run(plain.graph, [&](Interpreter& it) {
      for (const ValueId value : {net.table, net.up, net.down}) {
        if (is_floating(net.graph[value].type.dtype)) {
          it[value] = converted(drawn[value], DType::f32);
        }
      }
      for (const CodedWeight& weight : coded) {
        std::vector<TensorRef> values;
        for (const ValueId value : weight.values) values.push_back(drawn[value].ref());
        const CodedNumbers numbers = coded_numbers(weight.matrix, values);
        Tensor& whole = it[weight.values[0]];
        for (int64_t r = 0; r < weight.matrix.rows; ++r) {
          const int64_t columns = weight.matrix.columns;
          std::vector<float> row(static_cast<size_t>(columns));
          numbers.decode(r, 0, columns, row.data());
          for (int64_t c = 0; c < columns; ++c) {
            whole.set(r * columns + c, row[static_cast<size_t>(c)]);
          }
        }
      }
    });
    EXPECT_NEAR(loss, expected, 1e-5 * std::abs(expected));
  }
}

// No value of the step has the matrix's numbers; its bytes are those of bitsandbytes.
TEST(CodedWeights, NeverExistWhole) {
  Net net(Role::frozen);
  const Net plain(Role::frozen);
  code_frozen(net.graph, CodedFormat::nf4);
  const TensorType up = plain.graph[plain.up].type, down = plain.graph[plain.down].type;
  for (const Value& value : net.graph.values) {
    EXPECT_NE(value.type, up) << value.name;
    EXPECT_NE(value.type, down) << value.name;
  }
  EXPECT_EQ(net.graph[net.table].type.dtype, DType::bf16);  // embeddings and heads
  const CodedMatrix matrix = find_coded_weights(net.graph)[0].matrix;
  EXPECT_EQ(matrix.bytes().count, 70 * 64 / 2 + 70 + 4 + 4);
}

// A network from outside may bring adapters of its own, whose last product adds to its base.
TEST(CodedWeights, LeaveTheAddendOfAProduct) {
  Graph graph;
  Builder b(graph);
  const ValueId x = b.input("x", {{kRows, kWidth}}), base = b.input("base", {{kRows, kInner}});
  const ValueId w = b.frozen("w", {{kInner, kWidth}, DType::f32});
  const Attrs turned = {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}};
  const ValueId y = b.op("matmul", {x, w, base}, turned);
  graph.results = {y};
  code_frozen(graph, CodedFormat::bf16);
  verify_graph(graph);
  ASSERT_EQ(graph[w].type.dtype, DType::bf16);
  Interpreter interpreter(graph);
  interpreter[base].set(3, 0.5);  // x is zero
  interpreter.run();
  EXPECT_EQ(interpreter[y].get(3), 0.5);
}

TEST(CodedWeights, AreFrozenOnes) {
  Net net;
  EXPECT_THROW(check_codes_something(net.graph, CodedFormat::nf4), UserError);
  code_frozen(net.graph, CodedFormat::nf4);
  EXPECT_EQ(net.graph[net.up].type.dtype, DType::f32);
}

}  // namespace
}  // namespace thimble
