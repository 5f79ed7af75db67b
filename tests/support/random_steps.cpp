#include "support/random_steps.h"

#include <random>
#include <vector>

#include "autodiff/autodiff.h"
#include "graph/builder.h"
#include "transform/optimizer.h"

namespace thimble {
namespace {

const TensorType kSquare = {{8, 8}, DType::f32};

}  // namespace

RandomStep random_step(uint32_t seed) {
  std::mt19937 random(seed);
  RandomStep step;
  Graph& graph = step.graph;
  graph.name = fmt::format("random {}", seed);
  Builder b(graph);
  const auto any_of = [&](const std::vector<ValueId>& values) {
    return values[random() % values.size()];
  };
  step.rng = b.input("rng", {{3}, DType::i64});
  std::vector<ValueId> values = {b.input("x", kSquare), b.input("y", kSquare)};
  std::vector<ValueId> weights, biases;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(b.weight(fmt::format("w{}", i), kSquare, {Init::Kind::normal, 0.3}));
    biases.push_back(b.weight(fmt::format("b{}", i), {{8}, DType::f32}, {Init::Kind::normal, 0.3}));
  }
  const ValueId one = b.constant(1, kSquare);
  const int count = 6 + static_cast<int>(random() % 12);
  for (int i = 0; i < count; ++i) {
    // Mostly the newest value, so that the graph is deep.
    const ValueId x = random() % 3 == 0 ? any_of(values) : values.back();
    switch (random() % 12) {
      case 0:
        values.push_back(b.op("add", {x, any_of(values)}));
        break;
      case 1:
        values.push_back(b.op("mul", {x, random() % 4 == 0 ? one : any_of(values)}));
        break;
      case 2:
        values.push_back(b.op("sub", {x, any_of(values)}));
        break;
      case 3:
        values.push_back(b.op("relu", {x}));
        break;
      case 4:
        values.push_back(b.op("tanh", {x}));
        break;
      case 5:
        values.push_back(b.op("sigmoid", {x}));
        break;
      case 6:
        values.push_back(b.op("scale", {x}, {{"factor", -0.75}}));
        break;
      case 7:
        values.push_back(b.op("add", {x, any_of(biases)}));
        break;
      case 8:
        values.push_back(
            b.op("dropout", {x, step.rng}, {{"p", 0.25}, {"stream", b.next_random_stream()}}));
        break;
      case 9: {
        const ValueId flat = b.op("reshape", {x}, {{"shape", std::vector<int64_t>{4, 16}}});
        const ValueId there = random() % 2 == 0 ? b.op("tanh", {flat}) : flat;
        values.push_back(b.op("reshape", {there}, {{"shape", std::vector<int64_t>{8, 8}}}));
        break;
      }
      default:
        values.push_back(b.op(
            "matmul", {x, any_of(weights)},
            {{"transpose_a", int64_t{0}}, {"transpose_b", static_cast<int64_t>(random() % 2)}}));
    }
  }
  const ValueId last =
      b.op("tanh", {b.op("add", {values.back(), b.op("matmul", {any_of(values), weights[0]})})});
  const ValueId loss = b.op("reduce", {last}, {{"axes", std::vector<int64_t>{0, 1}}});
  graph.results = {loss, last};
  if (random() % 2 == 0) graph.results.push_back(any_of(values));
  std::vector<ValueId> wrt = weights;
  wrt.insert(wrt.end(), biases.begin(), biases.end());
  const GradientRoot root = {loss, b.constant(1, graph[loss].type)};
  const std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, wrt);
  const char* const optimizers[] = {"sgd", "nesterov", "adam"};
  add_updates(graph, wrt, gradients, parse_optimizer(optimizers[random() % 3]));
  verify_graph(graph);
  return step;
}

void fill_inputs(const Graph& graph, ValueId rng, uint64_t seed,
                 const std::function<void(ValueId, const Tensor&)>& put) {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || value.role != Role::input) continue;
    Tensor tensor(value.type);
    fill_tensor(tensor, {Fill::Kind::uniform, 0.01, 1}, seed * 1000 + v);
    if (rng.valid() && v == rng.at()) {
      for (int64_t i = 0; i < 3; ++i) tensor.set(i, static_cast<double>(seed + i));
    }
    put(make_id<ValueId>(v), tensor);
  }
}

}  // namespace thimble
