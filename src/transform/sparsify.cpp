#include "transform/sparsify.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/number/bits.h"
#include "graph/builder.h"
#include "graph/order.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 3> kMethods = {"dynamic", "static", "magnitude"};

// Whether output 0 of the node stands for input 0.
bool passes_on(const Node& node) { return node.op->casts || node.op->view; }

// Values that are the matrix of a linear map and nothing else, directly or through a cast or view:
// so embeddings, positions and kernels over time are not, nor are embeddings that project, too.
std::vector<bool> linear_maps(const Graph& graph) {
  std::vector<bool> maps(graph.values.size(), false), other(graph.values.size(), false);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const size_t read = node.inputs[i].at();
      const bool passes = i == 0 && passes_on(node);
      const bool map = ((node.op->maps >> i) & 1u) != 0;
      maps[read] = maps[read] || (passes ? maps[node.outputs[0].at()] : map);
      other[read] = other[read] || (passes ? other[node.outputs[0].at()] : !map);
    }
  }
  for (size_t v = 0; v < maps.size(); ++v) maps[v] = maps[v] && !other[v];
  return maps;
}

// Weights that can be sparse, in the order in which they are first read.
std::vector<ValueId> candidates(const Graph& graph) {
  const std::vector<bool> maps = linear_maps(graph);
  std::vector<ValueId> found;
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      const Value& value = graph[input];
      const bool fits = value.role == Role::weight && !value.producer.valid() &&
                        value.type.shape.rank() >= 2 && maps[input.at()];
      const bool known = std::find(found.begin(), found.end(), input) != found.end();
      if (fits && !known) found.push_back(input);
    }
  }
  return found;
}

// The weight that is read last: that of the layer which the loss looks at.
ValueId last_weight(const Graph& graph) {
  std::vector<ValueId> stands_for(graph.values.size());  // the weight that a value is
  ValueId last;
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      const Value& value = graph[input];
      const bool matrix = value.role == Role::weight && value.type.shape.rank() >= 2;
      const ValueId weight = matrix ? input : stands_for[input.at()];
      if (!weight.valid()) continue;
      last = weight;
      if (passes_on(node)) stands_for[node.outputs[0].at()] = weight;
    }
  }
  return last;
}

ValueId stem_of(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op->filter >= 0) return node.inputs[static_cast<size_t>(node.op->filter)];
  }
  return {};
}

std::vector<ValueId> usual_choice(const Graph& graph) {
  std::vector<ValueId> chosen = candidates(graph);
  const ValueId stem = stem_of(graph), last = last_weight(graph);
  std::erase_if(chosen, [&](ValueId weight) {
    return weight == stem || weight == last ||
           graph[weight].name.find("shortcut") != std::string::npos;
  });
  user_check(!chosen.empty(), "{} has no weight that is sparse by default; choose some by --sparse",
             graph.name);
  return chosen;
}

std::vector<ValueId> matching(const Graph& graph, const std::vector<std::string>& patterns) {
  const std::vector<ValueId> all = candidates(graph);
  std::vector<bool> taken(all.size(), false);
  for (const std::string& pattern : patterns) {
    bool matched = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (fnmatch(pattern.c_str(), graph[all[i]].name.c_str(), 0) != 0) continue;
      matched = taken[i] = true;
    }
    user_check(
        matched,
        "--sparse '{}' matches no weight of {} that is the matrix of a layer; names look like '{}'",
        pattern, graph.name, all.empty() ? "" : graph[all.front()].name);
  }
  std::vector<ValueId> chosen;
  for (size_t i = 0; i < all.size(); ++i) {
    if (taken[i]) chosen.push_back(all[i]);
  }
  return chosen;
}

int64_t nonzeros_of(const Value& weight, double density) {
  const auto elements = static_cast<double>(weight.type.elements());
  return std::max<int64_t>(1, std::llround(density * elements));
}

// An expand whose result is `weight` itself, so that its readers need not be told.
void add_expand(Builder& b, ValueId weight, ValueId pool, int64_t nonzeros) {
  Graph& graph = b.graph();
  const TensorType type = graph[weight].type;
  const std::string name = graph[weight].name;
  const ValueId first = b.statistic(name + ".first", {{1}, DType::i64});
  const ValueId mask = b.statistic(name + ".mask", {{bitmap_bytes(type.elements())}, DType::u8},
                                   {Init::Kind::mask, static_cast<double>(nonzeros)});
  const auto dims = type.shape.dims();
  const ValueId dense = b.op("expand", {pool, first, mask},
                             {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
  Node& node = graph[graph[dense].producer];
  node.name = name + "." + node.name;
  node.outputs[0] = weight;
  graph[weight].producer = graph[dense].producer;
  graph[weight].role = Role::activation;
  graph.values.pop_back();  // `dense`: the latest value, which nobody has seen
}

// Nodes from `made` on go in front of the first reader of what they make.
void move_to_readers(Graph& graph, size_t made) {
  std::vector<std::vector<NodeId>> in_front(made);
  const auto readers = readers_of(graph);
  for (size_t n = made; n < graph.nodes.size(); ++n) {
    in_front[readers[graph.nodes[n].outputs[0].at()].front().at()].push_back(make_id<NodeId>(n));
  }
  std::vector<NodeId> order;
  for (size_t n = 0; n < made; ++n) {
    order.insert(order.end(), in_front[n].begin(), in_front[n].end());
    order.push_back(make_id<NodeId>(n));
  }
  put_in_order(graph, order);
}

}  // namespace

std::string_view name_of(SparseMethod method) { return kMethods[static_cast<size_t>(method)]; }

SparseMethod parse_sparse_method(std::string_view name) {
  for (size_t m = 0; m < kMethods.size(); ++m) {
    if (kMethods[m] == name) return static_cast<SparseMethod>(m);
  }
  user_error("there is no way to move nonzeros called '{}'; known: {}", name,
             fmt::join(kMethods, ", "));
}

void check_sparsity(const SparsitySpec& spec) {
  if (spec.density == 0) return;
  user_check(spec.density > 0 && spec.density <= 1,
             "a density lies above 0 and is 1 at most, not {}", spec.density);
  user_check(std::isfinite(spec.threshold) && spec.threshold > 0,
             "the threshold to prune below is above 0, not {}", spec.threshold);
  user_check(std::isfinite(spec.target) && spec.target > 0,
             "the number of weights to prune is above 0, not {}", spec.target);
}

void sparsify(Graph& graph, const SparsitySpec& spec) {
  check_sparsity(spec);
  if (!spec.enabled()) return;
  const std::vector<ValueId> chosen =
      spec.weights.empty() ? usual_choice(graph) : matching(graph, spec.weights);
  std::vector<int64_t> nonzeros;
  int64_t total = 0;
  for (const ValueId weight : chosen) {
    user_check(graph[weight].type.dtype == graph[chosen[0]].type.dtype,
               "'{}' and '{}' are of different types, so that their nonzeros cannot share a pool; "
               "choose others by --sparse",
               graph[weight].name, graph[chosen[0]].name);
    nonzeros.push_back(nonzeros_of(graph[weight], spec.density));
    total += nonzeros.back();
  }
  Builder b(graph);
  const size_t made = graph.nodes.size();
  const ValueId pool = b.weight(kSparseValues, {{total}, graph[chosen[0]].type.dtype}, {});
  b.statistic(kSparseThreshold, {{1}, DType::f64}, {Init::Kind::constant, spec.threshold});
  // Kept, dense weights would be there from the forward pass to the backward pass, all at once.
  const Builder::Marked again(b, Mark::recompute);
  for (size_t i = 0; i < chosen.size(); ++i) add_expand(b, chosen[i], pool, nonzeros[i]);
  move_to_readers(graph, made);
}

void gather_early(Graph& graph) {
  std::vector<size_t> place(graph.nodes.size());  // by gather: the node it goes behind
  std::vector<std::vector<NodeId>> behind(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!node.op->packs) continue;
    place[n] = graph[node.inputs[0]].producer.at();
    const ValueId sum = node.added_into(0);
    const NodeId before = sum.valid() ? graph[sum].producer : NodeId{};
    const bool chained = before.valid() && graph[before].op->packs;
    if (chained) place[n] = std::max(place[n], place[before.at()]);
    behind[place[n]].push_back(make_id<NodeId>(n));
  }
  std::vector<NodeId> order;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!graph.nodes[n].op->packs) order.push_back(make_id<NodeId>(n));
    order.insert(order.end(), behind[n].begin(), behind[n].end());
  }
  put_in_order(graph, order);
}

}  // namespace thimble
