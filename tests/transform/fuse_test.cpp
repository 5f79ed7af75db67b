// Every pattern on graphs as files write them: fused, they give the same numbers and gradients, to
// 1e-12 in double precision (sums in another order; nothing else differs). And mutants, each one
// step from a pattern, which stay as they are.
#include "transform/fuse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <set>

#include "autodiff/autodiff.h"
#include "graph/builder.h"
#include "support/interpreter.h"

namespace thimble {
namespace {

using List = std::vector<int64_t>;
// Builds what is to be fused of weights; its result may have any shape.
using Body = std::function<ValueId(Builder& b)>;

TensorType f64(Shape shape) { return {shape, DType::f64}; }
ValueId weight(Builder& b, std::string_view name, Shape shape) {
  return b.weight(name, f64(shape), {Init::Kind::normal, 1});
}
ValueId map(Builder& b, ValueId x, std::string of, double a = 0) {
  return b.op("map", {x}, {{"of", std::move(of)}, {"a", a}});
}
ValueId scale(Builder& b, ValueId x, double by) { return b.op("scale", {x}, {{"factor", by}}); }
ValueId slice(Builder& b, ValueId x, int64_t axis, int64_t begin, int64_t end) {
  return b.op("slice", {x}, {{"axis", axis}, {"begin", begin}, {"end", end}});
}
ValueId shaped(Builder& b, ValueId x, List dims) {
  return b.op("reshape", {x}, {{"shape", std::move(dims)}});
}

// A loss that weighs every element of the result otherwise: the sum of its products with a table.
Graph graph_of(const Body& body) {
  Graph graph;
  Builder b(graph);
  ValueId y = body(b);
  const int64_t count = b.type(y).elements();
  if (count > 1) {
    const ValueId weights = b.statistic("loss.weights", f64({count}), {Init::Kind::normal, 1});
    y = b.op("mul", {shaped(b, y, {count}), weights});
    y = b.op("reduce", {y}, {{"axes", List{0}}, {"kind", std::string("sum")}});
  }
  graph.results = {shaped(b, y, {1})};
  return graph;
}

// By name of a weight, its gradient; and the loss, under "".
std::map<std::string, Tensor> run(Graph graph) {
  std::vector<ValueId> weights;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].role == Role::weight) weights.push_back(make_id<ValueId>(v));
  }
  Builder b(graph);
  const GradientRoot root = {graph.results[0], b.constant(1, f64({1}))};
  const std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, weights);
  verify_graph(graph);
  Interpreter interpreter(graph, nullptr, 5);
  const ValueId labels = graph.find("labels");
  for (int64_t i = 0; labels.valid() && i < interpreter[labels].elements(); ++i) {
    interpreter[labels].set(i, static_cast<double>(i % 5));
  }
  interpreter.run();
  std::map<std::string, Tensor> made;
  made.emplace("", interpreter[graph.results[0]]);
  for (size_t w = 0; w < weights.size(); ++w) {
    if (gradients[w].valid()) made.emplace(graph[weights[w]].name, interpreter[gradients[w]]);
  }
  return made;
}

// The graph once fused.
Graph check_fused(const Body& body, std::string_view pattern, bool fewer = true) {
  const Graph written = graph_of(body);
  Graph graph = written;
  const Fused fused = fuse(graph);
  EXPECT_EQ(fused.counts.size(), 1u);
  EXPECT_EQ(fused.counts.contains(pattern), true) << print_graph(graph);
  verify_graph(graph);
  EXPECT_LT(graph.nodes.size(), written.nodes.size() + (fewer ? 0 : 1));
  const auto before = run(written), after = run(graph);
  EXPECT_EQ(before.size(), after.size());
  for (const auto& [name, wanted] : before) {
    const Tensor& got = after.at(name);
    double largest = 1e-3;
    for (int64_t i = 0; i < wanted.elements(); ++i) {
      largest = std::max(largest, std::abs(wanted.get(i)));
    }
    for (int64_t i = 0; i < wanted.elements(); ++i) {
      EXPECT_NEAR(got.get(i), wanted.get(i), 1e-12 * largest) << pattern << ", d " << name;
    }
  }
  return graph;
}

void check_left_alone(const Body& body) {
  const Graph written = graph_of(body);
  Graph graph = written;
  const Fused fused = fuse(graph);
  EXPECT_TRUE(fused.counts.empty()) << print_graph(graph);
  EXPECT_EQ(print_graph(graph), print_graph(written));
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const Node& node : graph.nodes) found += node.op->name == op ? 1 : 0;
  return found;
}

struct Norm {
  std::string root = "rsqrt";
  int64_t axis = 2;
  bool gamma_first = true, product = false, by_channel = true;
  double epsilon = 1e-5;

  ValueId operator()(Builder& b) const {
    const ValueId x = weight(b, "x", {2, 3, 8});
    const ValueId gamma = weight(b, "gamma", by_channel ? Shape{8} : Shape{3, 1});
    const ValueId squares = product ? b.op("mul", {x, x}) : map(b, x, "square");
    ValueId r =
        b.op("reduce", {squares},
             {{"axes", List{axis}}, {"kind", std::string("mean")}, {"keep_dims", int64_t{1}}});
    r = map(b, r, "shift", epsilon);
    if (root == "rsqrt") {
      r = b.op("mul", {x, map(b, r, "rsqrt")});
    } else if (root == "div") {
      r = b.op("div", {x, map(b, r, "sqrt")});
    } else {
      r = b.op("mul", {x, scale(b, map(b, map(b, r, "sqrt"), "reciprocal"), 1)});
    }
    return gamma_first ? b.op("mul", {gamma, r}) : b.op("mul", {r, gamma});
  }
};

TEST(Fuse, RmsNorm) {
  for (const char* root : {"rsqrt", "div", "reciprocal"}) {
    for (const bool gamma_first : {true, false}) {
      for (const bool product : {true, false}) {
        const Graph graph = check_fused(
            Norm{.root = root, .gamma_first = gamma_first, .product = product}, "rms_norm");
        EXPECT_EQ(count(graph, "rms_norm"), 1);
      }
    }
  }
  check_left_alone(Norm{.axis = 1});
  check_left_alone(Norm{.by_channel = false});
}

TEST(Fuse, NothingThatIsReadInBetween) {
  const auto read_inside = [](Builder& b) {
    const ValueId y = Norm()(b);
    for (const Node& node : b.graph().nodes) {
      if (node.op->name == "reduce") return b.op("mul", {y, node.outputs[0]});
    }
    return y;
  };
  check_left_alone(read_inside);
  // Nor what others will ask for.
  Graph graph = graph_of(Norm());
  for (const Node& node : graph.nodes) {
    if (node.op->name != "reduce" || node.attrs.text("kind", "") != "mean") continue;
    const ValueId read[] = {node.outputs[0]};
    EXPECT_TRUE(fuse(graph, read).counts.empty());
    break;
  }
}

Body gate(std::string act, bool swapped, bool same_shape = true) {
  return [=](Builder& b) {
    const ValueId a = weight(b, "a", {4, 6}),
                  c = weight(b, "b", same_shape ? Shape{4, 6} : Shape{6});
    const ValueId gated = act == "tanh" ? b.op("gelu", {a}, {{"approximate", std::string("tanh")}})
                          : act == "none" ? b.op("gelu", {a})
                                          : b.op("silu", {a});
    return swapped ? b.op("mul", {c, gated}) : b.op("mul", {gated, c});
  };
}

TEST(Fuse, Gated) {
  for (const char* act : {"silu", "tanh", "none"}) {
    for (const bool swapped : {true, false}) check_fused(gate(act, swapped), "gated");
  }
  check_left_alone(gate("silu", false, false));
}

struct Gelu {
  double cube = 0.044715, half = 0.5;
  int halved = 0;  // x, the product, or 1 + tanh
  bool erf = false;

  ValueId operator()(Builder& b) const {
    const ValueId x = weight(b, "x", {5, 4});
    ValueId above;
    if (erf) {
      above = map(b, scale(b, x, 1 / std::numbers::sqrt2), "erf");
    } else {
      const ValueId inner = b.op("add", {x, scale(b, map(b, x, "pow", 3), cube)});
      above = b.op("tanh", {scale(b, inner, std::sqrt(2 / std::numbers::pi))});
    }
    above = map(b, above, "shift", 1);
    if (halved == 0) return b.op("mul", {scale(b, x, half), above});
    if (halved == 1) return scale(b, b.op("mul", {x, above}), half);
    return b.op("mul", {x, scale(b, above, half)});
  }
};

TEST(Fuse, Gelu) {
  for (const bool erf : {false, true}) {
    for (const int halved : {0, 1, 2}) check_fused(Gelu{.halved = halved, .erf = erf}, "gelu");
  }
  check_left_alone(Gelu{.cube = 0.0447});
  check_left_alone(Gelu{.half = 0.25});
}

struct Rotary {
  bool plain = false;     // x [N,H,T,D], else [N,T,H,D]
  bool swapped = false;   // (near, -far)
  bool unturned = false;  // the second product is of x, too
  bool trained = false;   // tables that are learned

  ValueId operator()(Builder& b) const {
    constexpr int64_t kRows = 2, kTime = 5, kHeads = 3, kSize = 4, kHalf = kSize / 2;
    const ValueId x = weight(
        b, "x", plain ? Shape{kRows, kHeads, kTime, kSize} : Shape{kRows, kTime, kHeads, kSize});
    const auto table = [&](std::string_view name) {
      const Shape shape = {1, 1, kTime, kSize};
      const ValueId whole =
          trained ? weight(b, name, shape) : b.statistic(name, f64(shape), {Init::Kind::normal, 1});
      return shaped(b, whole, plain ? List{kTime, kSize} : List{kTime, 1, kSize});
    };
    ValueId near = slice(b, x, 3, 0, kHalf), far = slice(b, x, 3, kHalf, kSize);
    if (swapped) std::swap(near, far);
    const ValueId turned = b.op("concat", {scale(b, far, -1), near}, {{"axis", int64_t{3}}});
    ValueId a = b.op("mul", {x, table("cosine")});
    const ValueId c = unturned ? x : turned;
    return b.op("add", {a, b.op("mul", {c, table("sine")})});
  }
};

TEST(Fuse, Rotary) {
  EXPECT_EQ(count(check_fused(Rotary{}, "rotary"), "slice"), 0);
  check_fused(Rotary{.plain = true}, "rotary");
  check_left_alone(Rotary{.swapped = true});
  check_left_alone(Rotary{.unturned = true});
  check_left_alone(Rotary{.trained = true});
}

struct Heads {
  bool turned = false;     // repeated in front of the positions, and turned back
  bool scattered = false;  // every head's keys are those of another group
  int64_t only = 2;        // of keys and values

  ValueId wide(Builder& b, ValueId x) const {
    constexpr int64_t kRows = 2, kTime = 5, kGroups = 2, kEach = 3, kSize = 4;
    const auto repeated = [&](ValueId from, List shape) {
      return b.op("broadcast_to", {from}, {{"shape", std::move(shape)}});
    };
    if (scattered) {
      x = shaped(b, x, {kRows, kTime, 1, kGroups, kSize});
      x = repeated(x, {kRows, kTime, kEach, kGroups, kSize});
    } else if (turned) {
      x = repeated(shaped(b, x, {kRows, 1, kTime, kGroups, kSize}),
                   {kRows, kEach, kTime, kGroups, kSize});
      x = b.op("transpose", {x}, {{"perm", List{0, 3, 1, 2, 4}}});
      x = shaped(b, x, {kRows, kGroups * kEach, kTime, kSize});
      x = b.op("transpose", {x}, {{"perm", List{0, 2, 1, 3}}});
    } else {
      x = shaped(b, x, {kRows, kTime, kGroups, 1, kSize});
      x = repeated(x, {kRows, kTime, kGroups, kEach, kSize});
    }
    return shaped(b, x, {kRows, kTime, kGroups * kEach * kSize});
  }

  ValueId operator()(Builder& b) const {
    const Shape all = {2, 5, 24}, shared = {2, 5, 8};
    const ValueId keys = wide(b, weight(b, "k", shared));
    const ValueId values = only == 2 ? wide(b, weight(b, "v", shared)) : weight(b, "v", all);
    return b.op("attention", {weight(b, "q", all), keys, values},
                {{"heads", int64_t{6}}, {"groups", int64_t{6}}, {"causal", int64_t{1}}});
  }
};

TEST(Fuse, GroupedHeads) {
  for (const bool turned : {false, true}) {
    const Graph graph = check_fused(Heads{.turned = turned}, "grouped_heads");
    EXPECT_EQ(count(graph, "broadcast_to"), 0);
    EXPECT_EQ(count(graph, "transpose"), 0);
    EXPECT_EQ(count(graph, "reshape"), 2);  // of the loss
  }
  check_left_alone(Heads{.scattered = true});
  check_left_alone(Heads{.only = 1});
}

struct Vocabulary {
  bool counted = true, biased = false, read = false;

  ValueId operator()(Builder& b) const {
    constexpr int64_t kRows = 2, kTime = 3, kWidth = 4, kClasses = 5;
    const ValueId h = weight(b, "h", {kRows, kTime, kWidth});
    const ValueId head = weight(b, "head", {kClasses, kWidth});
    const ValueId labels = b.input("labels", {{kRows * kTime}, DType::i32});
    ValueId logits = b.op("matmul", {h, head}, {{"transpose_b", int64_t{1}}});
    if (biased) logits = b.op("bias_act", {logits, weight(b, "bias", {kClasses})});
    logits = shaped(b, logits, {kRows * kTime, kClasses});
    const ValueId one = b.constant(0.5, f64({1}));
    const ValueId loss = b.op("softmax_cross_entropy", {logits, labels, one},
                              {{"label_smoothing", 0.1}, {"ignore_index", int64_t{2}}});
    if (counted) b.op("count_correct", {logits, labels});
    if (!read) return loss;
    return b.op("add", {loss, b.op("reduce", {logits}, {{"axes", List{0, 1}}})});
  }
};

TEST(Fuse, VocabularyLoss) {
  for (const bool counted : {true, false}) {
    const Graph graph = check_fused(Vocabulary{.counted = counted}, "vocabulary_loss");
    EXPECT_EQ(count(graph, "count_correct"), 0);
    for (const Value& value : graph.values) EXPECT_LT(value.type.elements(), 30) << value.name;
  }
  check_left_alone(Vocabulary{.biased = true});
  check_left_alone(Vocabulary{.read = true});
}

Body biased(bool product, Shape bias) {
  return [=](Builder& b) {
    const ValueId x = weight(b, "x", {6, 4}), w = weight(b, "w", {4, 5});
    const ValueId y = product ? b.op("matmul", {x, w}) : weight(b, "y", {6, 5});
    return b.op("add", {weight(b, "bias", bias), y});
  };
}

TEST(Fuse, Bias) {
  EXPECT_EQ(count(check_fused(biased(true, {5}), "bias", false), "bias_act"), 1);
  check_left_alone(biased(false, {5}));
  check_left_alone(biased(true, {6, 5}));
}

struct Adapter {
  double factor = 2;
  bool base_is_product = true, read = false;

  ValueId operator()(Builder& b) const {
    const ValueId x = weight(b, "x", {3, 4, 6});
    const Attrs turned = {{"transpose_b", int64_t{1}}};
    const ValueId product = b.op("matmul", {x, weight(b, "w", {8, 6})}, turned);
    const ValueId base = base_is_product ? product : weight(b, "base", {3, 4, 8});
    const ValueId t = b.op("matmul", {x, weight(b, "A", {2, 6})}, turned);
    const ValueId wide = b.op("matmul", {t, weight(b, "B", {8, 2})}, turned);
    const ValueId y = b.op("add", {base, factor == 1 ? wide : scale(b, wide, factor)});
    return read ? b.op("add", {y, wide}) : y;
  }
};

TEST(Fuse, AddInto) {
  const Graph graph = check_fused(Adapter{}, "add_into", false);
  EXPECT_EQ(count(graph, "add"), 0);
  check_fused(Adapter{.factor = 1}, "add_into");
  check_left_alone(Adapter{.base_is_product = false});
  check_left_alone(Adapter{.read = true});
}

// A square of a bf16 tensor is computed in f32 (import/lowering.h), and what is scaled of it rounded
// twice; the op rounds once, and reads its scales in f32.
TEST(Fuse, LooksThroughCastsOfSixteenBits) {
  Graph graph;
  Builder b(graph);
  const auto cast = [&](ValueId x, const char* to) {
    return b.op("cast", {x}, {{"dtype", std::string(to)}});
  };
  const ValueId x = b.weight("x", {{3, 8}, DType::bf16}, {}), wide = cast(x, "f32");
  ValueId r = b.op("reduce", {map(b, wide, "square")},
                   {{"axes", List{1}}, {"kind", std::string("mean")}, {"keep_dims", int64_t{1}}});
  r = map(b, map(b, r, "shift", 1e-6), "rsqrt");
  const ValueId normed = cast(b.op("mul", {wide, r}), "bf16");
  const ValueId gamma = b.weight("gamma", {{8}, DType::f32}, {});
  graph.results = {b.op("mul", {cast(gamma, "bf16"), normed})};
  EXPECT_EQ(fuse(graph).counts.at("rms_norm"), 1);
  ASSERT_EQ(graph.nodes.size(), 1u) << print_graph(graph);
  EXPECT_EQ(graph[graph.nodes[0].inputs[0]].name, "x");
  EXPECT_EQ(graph[graph.nodes[0].inputs[1]].name, "gamma");
  EXPECT_EQ(graph[graph.results[0]].type.dtype, DType::bf16);
}

// Streams are numbers of values; there are fewer now, and none is given twice.
TEST(Fuse, RandomStreamsStayApart) {
  Graph graph;
  Builder b(graph);
  const ValueId rng = b.input("rng", {{3}, DType::i64});
  const ValueId x = Norm()(b);
  std::vector<ValueId> dropped;
  for (int i = 0; i < 3; ++i) {
    dropped.push_back(b.op("dropout", {x, rng}, {{"p", 0.5}, {"stream", b.next_random_stream()}}));
  }
  graph.results = dropped;
  EXPECT_EQ(fuse(graph).counts.at("rms_norm"), 1);
  std::set<int64_t> streams = {b.next_random_stream()};
  for (const Node& node : graph.nodes) {
    if (node.op->name == "dropout") streams.insert(node.attrs.integer("stream"));
  }
  EXPECT_EQ(streams.size(), 4u);
}

}  // namespace
}  // namespace thimble
