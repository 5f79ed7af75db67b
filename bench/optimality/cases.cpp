#include "optimality/cases.h"

#include <functional>
#include <random>

#include "autodiff/autodiff.h"
#include "backend/backend.h"
#include "base/error.h"
#include "execute/costs.h"
#include "graph/builder.h"

namespace thimble {
namespace {

constexpr int64_t kRows = 4096;  // of dense nets
constexpr int64_t kImages = 16;  // of convolutional ones
constexpr int64_t kClasses = 100;

// Layers without names, in as few nodes as each needs.
class Net {
 public:
  Net() : b_(graph_) {}

  ValueId rows(int64_t features) { return b_.input("x", {{kRows, features}, DType::f32}); }
  ValueId images(int64_t size, int64_t channels) {
    return b_.input("x", {{kImages, size, size, channels}, DType::f32});
  }

  ValueId dense(ValueId x, int64_t out) { return b_.op("matmul", {x, weight({width(x), out})}); }
  ValueId dense(ValueId x, int64_t out, const std::string& act) {
    return b_.op("bias_act", {dense(x, out), weight({out})}, {{"act", act}});
  }
  ValueId conv(ValueId x, int64_t out, int64_t kernel = 3, int64_t stride = 1) {
    return b_.op("conv2d", {x, weight({out, kernel, kernel, width(x)})},
                 {{"stride", stride}, {"pad", kernel / 2}, {"groups", int64_t{1}}});
  }
  ValueId norm_relu(ValueId x) {
    const auto statistics = b_.apply("batch_norm_stats", {x});
    return b_.op("batch_norm",
                 {x, statistics[0], statistics[1], weight({width(x)}), weight({width(x)})},
                 {{"act", std::string("relu")}, {"training", int64_t{1}}});
  }
  ValueId layer_norm(ValueId x) {
    return b_.op("layer_norm", {x, weight({width(x)}), weight({width(x)})});
  }
  ValueId relu(ValueId x) { return b_.op("relu", {x}); }
  ValueId tanh(ValueId x) { return b_.op("tanh", {x}); }
  ValueId sigmoid(ValueId x) { return b_.op("sigmoid", {x}); }
  ValueId add(ValueId x, ValueId y) { return b_.op("add", {x, y}); }
  ValueId mul(ValueId x, ValueId y) { return b_.op("mul", {x, y}); }
  ValueId max_pool(ValueId x) { return b_.op("max_pool", {x}, {{"kernel", int64_t{2}}}); }
  ValueId concat(std::vector<ValueId> parts) {
    const int64_t axis = b_.shape(parts[0]).rank() - 1;
    return b_.op("concat", std::move(parts), {{"axis", axis}});
  }

  Builder& build() { return b_; }
  int64_t width(ValueId x) const { return b_.shape(x).back(); }
  ValueId weight(Shape shape) {
    weights_.push_back(b_.weight(fmt::format("w{}", weights_.size()), {shape, DType::f32},
                                 {Init::Kind::normal, 0.02}));
    return weights_.back();
  }

  // Closes the net with a classifier and its loss, and differentiates it.
  Graph finish(ValueId x) {
    if (b_.shape(x).rank() == 4) x = b_.op("global_avg_pool", {x});
    return finish_with_logits(dense(x, kClasses));
  }
  Graph finish_with_logits(ValueId logits) {
    const ValueId labels = b_.input("labels", {{b_.shape(logits)[0]}, DType::i32});
    const ValueId normalizer = b_.input("normalizer", {{1}, DType::f32});
    const ValueId loss = b_.op("softmax_cross_entropy", {logits, labels, normalizer},
                               {{"label_smoothing", 0.0}, {"ignore_index", int64_t{-1}}});
    graph_.results = {loss};
    const GradientRoot root = {loss, b_.constant(1, b_.type(loss))};
    add_gradients(graph_, {&root, 1}, weights_);
    verify_graph(graph_);
    return std::move(graph_);
  }

 private:
  Graph graph_;
  Builder b_;
  std::vector<ValueId> weights_;
};

// Chains.

Graph dense_chain(const std::vector<int64_t>& widths) {
  Net net;
  ValueId x = net.rows(widths[0]);
  for (size_t i = 1; i < widths.size(); ++i) x = net.relu(net.dense(x, widths[i]));
  return net.finish(x);
}

Graph fused_dense_chain(const std::vector<int64_t>& widths, const std::string& act) {
  Net net;
  ValueId x = net.rows(widths[0]);
  for (size_t i = 1; i < widths.size(); ++i) x = net.dense(x, widths[i], act);
  return net.finish(x);
}

struct ConvLayer {
  int64_t out = 0, kernel = 3, stride = 1;
};

Graph conv_chain(int64_t size, const std::vector<ConvLayer>& layers) {
  Net net;
  ValueId x = net.images(size, 3);
  for (const ConvLayer& layer : layers) {
    x = net.relu(net.conv(x, layer.out, layer.kernel, layer.stride));
  }
  return net.finish(x);
}

Graph pooled_chain(const std::vector<int64_t>& channels) {
  Net net;
  ValueId x = net.images(64, 3);
  for (const int64_t out : channels) {
    x = net.max_pool(net.relu(net.conv(net.relu(net.conv(x, out)), out)));
  }
  return net.finish(x);
}

Graph normalised_chain(const std::vector<ConvLayer>& layers) {
  Net net;
  ValueId x = net.images(56, 16);
  for (const ConvLayer& layer : layers) {
    x = net.norm_relu(net.conv(x, layer.out, layer.kernel, layer.stride));
  }
  return net.finish(x);
}

// Residual nets.

Graph residual(int blocks, int64_t channels) {
  Net net;
  ValueId x = net.conv(net.images(56, 3), channels);
  for (int i = 0; i < blocks; ++i) {
    x = net.add(x, net.conv(net.relu(net.conv(x, channels)), channels));
  }
  return net.finish(x);
}

Graph bottleneck_residual(int blocks) {
  Net net;
  ValueId x = net.conv(net.images(56, 3), 128);
  for (int i = 0; i < blocks; ++i) {
    const ValueId narrow = net.relu(net.conv(x, 32, 1));
    x = net.add(x, net.conv(net.relu(net.conv(narrow, 32)), 128, 1));
  }
  return net.finish(x);
}

Graph preactivated_residual() {
  Net net;
  ValueId x = net.conv(net.images(56, 3), 64);
  for (int i = 0; i < 2; ++i) x = net.add(x, net.conv(net.norm_relu(x), 64));
  return net.finish(x);
}

Graph dense_residual(int blocks) {
  Net net;
  ValueId x = net.rows(512);
  for (int i = 0; i < blocks; ++i) {
    x = net.add(x, net.dense(net.tanh(net.dense(x, 1024 << (i % 2))), 512));
  }
  return net.finish(x);
}

// Nets whose early values are read late.

Graph densely_connected(const std::vector<int64_t>& growths) {
  Net net;
  ValueId all = net.conv(net.images(32, 3), 64);
  for (const int64_t growth : growths) all = net.concat({all, net.conv(net.relu(all), growth)});
  return net.finish(all);
}

Graph adding_unet(const std::vector<int64_t>& widths) {
  Net net;
  ValueId x = net.rows(widths[0]);
  std::vector<ValueId> skips;
  for (size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) skips.push_back(x);
    x = net.tanh(net.dense(x, widths[i]));
  }
  for (size_t i = widths.size() - 1; i-- > 1;) {
    x = net.add(net.dense(x, widths[i]), skips.back());
    skips.pop_back();
  }
  return net.finish(x);
}

Graph concatenating_unet(const std::vector<int64_t>& widths) {
  Net net;
  ValueId x = net.rows(widths[0]);
  std::vector<ValueId> skips;
  for (size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) skips.push_back(x);
    x = net.relu(net.dense(x, widths[i]));
  }
  for (size_t i = widths.size() - 1; i-- > 1;) {
    x = net.relu(net.dense(net.concat({x, skips.back()}), widths[i]));
    skips.pop_back();
  }
  return net.finish(x);
}

Graph conv_unet(const std::vector<int64_t>& channels) {
  Net net;
  ValueId x = net.images(56, 3);
  std::vector<ValueId> skips;
  for (const int64_t out : channels) {
    x = net.relu(net.conv(x, out));
    skips.push_back(x);
  }
  skips.pop_back();
  for (; !skips.empty(); skips.pop_back()) {
    x = net.relu(net.add(net.conv(x, net.width(skips.back())), skips.back()));
  }
  return net.finish(x);
}

Graph branches() {
  Net net;
  ValueId x = net.conv(net.images(32, 3), 96);
  for (int i = 0; i < 2; ++i) {
    const ValueId wide = net.conv(net.relu(net.conv(x, 32, 1)), 96, 5);
    x = net.concat({net.conv(x, 48, 1), wide});
  }
  return net.finish(x);
}

Graph highway(int layers) {
  Net net;
  ValueId x = net.rows(1024);
  for (int i = 0; i < layers; ++i) {
    x = net.add(x, net.mul(net.sigmoid(net.dense(x, 1024)), net.tanh(net.dense(x, 1024))));
  }
  return net.finish(x);
}

Graph transformer_feed_forward(int blocks) {
  Net net;
  ValueId x = net.rows(512);
  for (int i = 0; i < blocks; ++i) {
    x = net.add(x, net.dense(net.dense(net.layer_norm(x), 2048, "relu"), 512));
  }
  return net.finish(x);
}

Graph attention() {
  constexpr int64_t kSequences = 16, kLength = kRows / kSequences, kWidth = 512;
  Net net;
  Builder& b = net.build();
  const ValueId x = net.layer_norm(net.dense(net.rows(64), kWidth));
  const auto split = [&](ValueId v) {
    return b.op("reshape", {v}, {{"shape", std::vector<int64_t>{kSequences, kLength, kWidth}}});
  };
  const ValueId q = split(net.dense(x, kWidth)), k = split(net.dense(x, kWidth));
  const ValueId v = split(net.dense(x, kWidth));
  const ValueId scores =
      b.op("matmul", {q, k}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}});
  const ValueId mixed = b.op("matmul", {b.op("softmax", {scores}), v});
  const ValueId flat = b.op("reshape", {mixed}, {{"shape", std::vector<int64_t>{kRows, kWidth}}});
  return net.finish(net.add(x, net.dense(flat, kWidth)));
}

// `length` time steps of stacked cells of the given widths.
Graph lstm(int64_t length, const std::vector<int64_t>& hidden) {
  Net net;
  Builder& b = net.build();
  struct Cell {
    ValueId to_gates, recurrent, bias, h, c;
  };
  std::vector<Cell> cells;
  int64_t in = 256;
  for (const int64_t width : hidden) {
    const ValueId zero = b.constant(0, {{kRows, width}, DType::f32});
    cells.push_back({net.weight({4 * width, in}), net.weight({4 * width, width}),
                     net.weight({4 * width}), zero, zero});
    in = width;
  }
  for (int64_t t = 0; t < length; ++t) {
    ValueId x = b.input(fmt::format("x{}", t), {{kRows, 256}, DType::f32});
    for (Cell& cell : cells) {
      const auto next =
          b.apply("lstm_cell", {x, cell.h, cell.c, cell.to_gates, cell.recurrent, cell.bias});
      x = cell.h = next[0];
      cell.c = next[1];
    }
  }
  return net.finish(cells.back().h);
}

// Random layers, each on one or two of the values so far; loose ends are summed.
Graph random_dag(uint32_t seed, int layers) {
  std::mt19937 random(seed);
  Net net;
  const int64_t widths[] = {256, 512, 768, 1024, 1536};
  std::vector<ValueId> values = {net.dense(net.rows(256), widths[random() % 5])};
  std::vector<bool> read = {false};
  const auto any = [&](auto&& fits) {
    std::vector<size_t> found;
    for (size_t i = 0; i < values.size(); ++i) {
      if (fits(i)) found.push_back(i);
    }
    const size_t i = found[random() % found.size()];
    read[i] = true;
    return values[i];
  };
  const auto append = [&](ValueId value) {
    values.push_back(value);
    read.push_back(false);
  };
  for (int i = 0; i < layers; ++i) {
    const bool deepen = random() % 3 != 0;
    const ValueId x = any([&](size_t j) { return !deepen || j + 1 == values.size(); });
    const auto same_width = [&](size_t j) { return net.width(values[j]) == net.width(x); };
    switch (random() % 6) {
      case 0:
        append(net.tanh(x));
        break;
      case 1:
        append(net.add(net.dense(x, net.width(x)), any(same_width)));
        break;
      case 2:
        append(net.mul(x, net.sigmoid(any(same_width))));
        break;
      case 3:
        append(net.relu(x));
        break;
      default:
        append(net.dense(x, widths[random() % 5]));
    }
  }
  ValueId last = values.back();
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    if (!read[i]) last = net.concat({last, values[i]});
  }
  return net.finish(last);
}

Costs costs_of(const Graph& graph, Backend& device) {
  Costs costs = gather_costs(graph, device);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op->name.find("conv2d") == std::string_view::npos) continue;
    costs.nodes[n].workspace = Bytes(graph[node.outputs[0]].type.bytes().count / 4);
  }
  return costs;
}

}  // namespace

std::vector<OptimalityCase> optimality_cases() {
  std::vector<OptimalityCase> cases;
  const auto device = make_backend("null", 1);
  const auto add = [&](std::string name, Graph graph) {
    graph.name = name;
    Costs costs = costs_of(graph, *device);
    cases.push_back({std::move(name), std::move(graph), std::move(costs)});
  };
  add("dense-taper", dense_chain({512, 1024, 960, 896, 768, 640, 512}));
  add("dense-uneven", dense_chain({256, 2048, 128, 1024, 2048, 512, 1024}));
  add("dense-fused", fused_dense_chain({512, 1024, 512, 2048, 256, 1024}, "tanh"));
  add("conv-even", conv_chain(56, {{64}, {64}, {64}, {64}, {64}, {64}}));
  add("conv-pyramid", conv_chain(112, {{32}, {64, 3, 2}, {64}, {128, 3, 2}, {128}, {256, 3, 2}}));
  add("conv-kernels", conv_chain(56, {{48, 7}, {96, 1}, {32, 5}, {128, 1}, {64, 3}, {64, 1}}));
  add("conv-pooled", pooled_chain({48, 96}));
  add("conv-normalised", normalised_chain({{64}, {64}, {128, 3, 2}, {96, 1}, {128}}));
  add("residual-2", residual(2, 96));
  add("residual-3", residual(3, 64));
  add("residual-bottleneck", bottleneck_residual(2));
  add("residual-preactivated", preactivated_residual());
  add("residual-dense", dense_residual(4));
  add("densely-connected-2", densely_connected({96, 64}));
  add("densely-connected-3", densely_connected({32, 48, 64}));
  add("unet-add", adding_unet({512, 1024, 768, 384, 128}));
  add("unet-concat", concatenating_unet({512, 1024, 512, 128}));
  add("unet-conv", conv_unet({48, 64, 128}));
  add("branches", branches());
  add("highway", highway(2));
  add("feed-forward", transformer_feed_forward(3));
  add("attention", attention());
  add("lstm-6", lstm(6, {512}));
  add("lstm-stacked", lstm(4, {512, 384}));
  for (const uint32_t seed : {1u, 2u, 3u, 4u, 5u}) {
    add(fmt::format("random-{}", seed), random_dag(seed, 7));
  }
  return cases;
}

}  // namespace thimble
