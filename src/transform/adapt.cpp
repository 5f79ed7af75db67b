#include "transform/adapt.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/order.h"
#include "transform/linear_layers.h"

namespace thimble {
namespace {

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kWeight = ".weight";

std::string module_of(std::string_view weight) {
  if (weight.ends_with(kWeight)) weight.remove_suffix(kWeight.size());
  return std::string(weight);
}

// A linear map: the node, and how its matrix lies.
struct Linear {
  NodeId node;
  ValueId weight;
  bool in_first;
};

std::vector<Linear> linear_layers(const Graph& graph) {
  std::vector<Linear> maps;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto product = product_of(node);
    if (!product || node.op->decodes) continue;
    const Value& weight = graph[node.inputs[1]];
    const bool trained = weight.role == Role::weight || weight.role == Role::frozen;
    if (!trained || weight.producer.valid() || weight.type.shape.rank() != 2) continue;
    maps.push_back({make_id<NodeId>(n), node.inputs[1], !product->row_per_output});
  }
  return maps;
}

class Targets {
 public:
  explicit Targets(const std::string& text) : text_(text) {
    if (is_all()) return;
    if (text.find_first_of("*.()[]|\\^$") != text.npos) {
      try {
        pattern_ = std::regex(text);
      } catch (const std::regex_error&) {
        user_error("--lora targets '{}' is no regular expression", text);
      }
    }
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('+', begin), text.size());
      names_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  bool is_all() const { return text_ == "linear"; }
  bool match(const std::string& module) const {
    if (is_all() || (pattern_ && std::regex_match(module, *pattern_))) return true;
    return std::ranges::any_of(names_, [&](const std::string& name) {
      return module == name || module.ends_with("." + name);
    });
  }

 private:
  const std::string& text_;
  std::optional<std::regex> pattern_;
  std::vector<std::string> names_;
};

class Adapting {
 public:
  Adapting(Graph& graph, const AdapterSpec& spec, ValueId& rng)
      : graph_(graph), b_(graph), spec_(spec), rng_(rng), first_(graph.nodes.size()) {}

  void add(const Linear& linear) {
    const NodeId id = linear.node;
    const std::string module = module_of(graph_[linear.weight].name);
    const Builder::Scope scope(b_, module);
    const ValueId x = graph_[id].inputs[0], y = graph_[id].outputs[0];
    const Shape w = graph_[linear.weight].type.shape;
    const int64_t in = linear.in_first ? w[0] : w[1], out = linear.in_first ? w[1] : w[0];
    const double reach = 1 / std::sqrt(static_cast<double>(in));
    const auto factor = [&](std::string_view suffix, Shape shape, Init init) {
      const std::string name = module + std::string(suffix);
      const ValueId known = graph_.find(name);  // of another use of the layer
      if (known.valid()) return known;
      graph_.values.push_back({name, {shape, DType::f32}, Role::weight, NodeId{}, init});
      return make_id<ValueId>(graph_.values.size() - 1);
    };
    const ValueId a = factor(kA, {spec_.rank, in}, {Init::Kind::uniform, reach});
    const ValueId b = factor(kB, {out, spec_.rank}, {});
    const DType dtype = b_.type(x).dtype;
    const auto as_read = [&](ValueId value) {
      return b_.type(value).dtype == dtype
                 ? value
                 : b_.op("cast", {value}, {{"dtype", std::string(name_of(dtype))}});
    };
    const Attrs turned = {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}};
    ValueId t = b_.op("matmul", {dropped(x), as_read(a)}, turned);
    t = b_.op("scale", {t}, {{"factor", spec_.scale()}});
    const ValueId low = b_.op("matmul", {t, as_read(b)}, turned);
    const ValueId sum = b_.op("add", {y, low});
    // Readers of y read the sum: it takes y's place, and the map makes the value that was the sum's.
    Node& last = graph_.nodes.back();
    last.outputs[0] = y;
    last.inputs[0] = sum;
    graph_[y].producer = graph_[sum].producer;
    graph_[id].outputs[0] = sum;
    graph_[sum].producer = id;
    slots_.resize(graph_.nodes.size() - first_, id.at() + 1);
  }

  void finish() { insert_nodes(graph_, first_, slots_); }

 private:
  ValueId dropped(ValueId x) {
    if (spec_.dropout == 0) return x;
    if (!rng_.valid()) {
      graph_.values.push_back({"rng", {{3}, DType::i64}, Role::input, NodeId{}, {}});
      rng_ = make_id<ValueId>(graph_.values.size() - 1);
    }
    return b_.op("dropout", {x, rng_}, {{"p", spec_.dropout}, {"stream", b_.next_random_stream()}});
  }

  Graph& graph_;
  Builder b_;
  const AdapterSpec& spec_;
  ValueId& rng_;
  const size_t first_;
  std::vector<size_t> slots_;
};

}  // namespace

void adapt(Graph& graph, const AdapterSpec& spec, ValueId& rng, ValueId logits) {
  const Targets targets(spec.targets);
  const auto readers = readers_of(graph);
  std::vector<bool> is_table(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (((node.op->tables >> i) & 1u) != 0) is_table[node.inputs[i].at()] = true;
    }
  }
  std::vector<Linear> chosen;
  std::vector<std::string> others;
  for (const Linear& linear : linear_layers(graph)) {
    const std::string module = module_of(graph[linear.weight].name);
    const ValueId made = graph[linear.node].outputs[0];
    const bool head = makes_logits(graph, readers, made, logits) || is_table[linear.weight.at()];
    if (targets.match(module) && !(targets.is_all() && head)) {
      chosen.push_back(linear);
    } else if (!head) {
      others.push_back(module);
    }
  }
  std::ranges::sort(others);
  others.erase(std::unique(others.begin(), others.end()), others.end());
  others.resize(std::min<size_t>(others.size(), 5));
  user_check(!chosen.empty(), "--lora targets={} match no linear layer of {}{}", spec.targets,
             graph.name, others.empty() ? "" : fmt::format("; it has {}", fmt::join(others, ", ")));
  for (Value& value : graph.values) {
    if (value.role == Role::weight && !value.producer.valid()) value.role = Role::frozen;
  }
  Adapting adapting(graph, spec, rng);
  for (const Linear& linear : chosen) adapting.add(linear);
  adapting.finish();
}

bool is_adapter(std::string_view value_name) {
  return value_name.ends_with(kA) || value_name.ends_with(kB);
}

std::vector<Adapter> find_adapters(const Graph& graph) {
  std::vector<bool> in_first(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    const auto product = product_of(node);
    const bool as_is = product && !product->row_per_output && !node.backward;
    if (as_is) in_first[node.inputs[1].at()] = true;
  }
  std::vector<Adapter> adapters;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !value.name.ends_with(kA)) continue;
    Adapter adapter = {.module = value.name.substr(0, value.name.size() - kA.size()),
                       .a = make_id<ValueId>(v)};
    adapter.b = graph.find(adapter.module + std::string(kB));
    adapter.weight = graph.find(adapter.module + std::string(kWeight));
    if (!adapter.weight.valid()) adapter.weight = graph.find(adapter.module);
    internal_check(adapter.b.valid() && adapter.weight.valid(), "half an adapter");
    adapter.in_first = in_first[adapter.weight.at()];
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

}  // namespace thimble
