#include "transform/encode_activations.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/order.h"

namespace thimble {
namespace {

constexpr int64_t kWorthEncoding = 1024;  // elements

constexpr std::string_view kScope = "codec";  // of the nodes added here; their codec's is inside

// Where a node of the backward pass reads a value, and how.
struct Read {
  size_t node;
  size_t input;
  Reading how;
};

// Which values of a step can be encoded, and who would read them decoded.
class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) { find_activations(); }

  // By value: where the backward pass reads it, if it may be encoded at all.
  std::vector<std::vector<Read>> backward_reads() const {
    std::vector<std::vector<Read>> reads(graph_.values.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      for (size_t i = 0; i < node.inputs.size() && node.backward; ++i) {
        if (!is_large_activation(node.inputs[i])) continue;
        const Reading how =
            node.op->reading == nullptr ? Reading::linear : node.op->reading(node.attrs, i);
        reads[node.inputs[i].at()].push_back({n, i, how});
      }
    }
    for (std::vector<Read>& of_value : reads) {
      const auto exact = [](const Read& read) { return read.how == Reading::exact; };
      if (std::any_of(of_value.begin(), of_value.end(), exact)) of_value.clear();
    }
    return reads;
  }

 private:
  // Weights that are cast or expanded for their readers are none: values that follow from weights alone
  // are recomputed from them.
  void find_activations() {
    is_activation_.assign(graph_.values.size(), false);
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      is_activation_[v] = graph_.values[v].role == Role::input;
    }
    for (const Node& node : graph_.nodes) {
      const bool follows = std::any_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId input) { return is_activation_[input.at()]; });
      for (const ValueId output : node.outputs) is_activation_[output.at()] = follows;
    }
  }

  bool is_large_activation(ValueId value) const {
    const auto& results = graph_.results;
    if (std::find(results.begin(), results.end(), value) != results.end()) return false;
    const TensorType& type = graph_[value].type;
    if (!is_activation_[value.at()]) return false;
    if (!is_floating(type.dtype) || type.elements() < kWorthEncoding) return false;
    for (NodeId maker = graph_[value].producer;; maker = graph_[graph_[maker].inputs[0]].producer) {
      if (!maker.valid() || graph_[maker].backward || !graph_[maker].op->updates.empty())
        return false;
      if (!graph_[maker].op->view) return true;
    }
  }

  const Graph& graph_;
  std::vector<bool> is_activation_;  // by value: it depends on what the step is given
};

// Patterns that say where to encode.
class Patterns {
 public:
  explicit Patterns(const CodecSpec& spec) : spec_(spec), used_(spec.only.size(), false) {}

  bool match(const std::string& name) {
    bool chosen = spec_.only.empty();
    for (size_t p = 0; p < spec_.only.size(); ++p) {
      if (fnmatch(spec_.only[p].c_str(), name.c_str(), 0) != 0) continue;
      chosen = used_[p] = true;
    }
    return chosen;
  }

  void check_used(const Graph& graph) const {
    for (size_t p = 0; p < used_.size(); ++p) {
      user_check(used_[p], "--codec-only '{}' matches no node of {} whose result {} would encode",
                 spec_.only[p], graph.name, to_string(spec_));
    }
  }

 private:
  const CodecSpec& spec_;
  std::vector<bool> used_;  // by pattern: it chose something
};

Encodable encodable_of(ValueId value, const std::vector<Read>& reads) {
  const auto is = [](Reading how) { return [how](const Read& read) { return read.how == how; }; };
  return {value, std::all_of(reads.begin(), reads.end(), is(Reading::sign)),
          std::any_of(reads.begin(), reads.end(), is(Reading::curved))};
}

class Encoder {
 public:
  Encoder(Graph& graph, const CodecSpec& spec, ValueId rng)
      : graph_(graph), builder_(graph), rng_(rng), kept_(graph.values.size()) {
    wanted_.assign(graph.values.size(), spec.automatic ? nullptr : spec.codec);
    if (!spec.automatic) return;
    for (const ValueCodec& choice : *spec.chosen) {
      const ValueId value = graph.find(choice.value);
      user_check(value.valid(),
                 "there is no '{}' in {} to keep as {}; what to encode was chosen for another "
                 "form of the net: with the --steps-at-once and --device of then it is there",
                 choice.value, graph.name, name_of(choice.codec));
      wanted_[value.at()] = choice.codec;
    }
  }

  ValueId run(Patterns& patterns) {
    first_ = graph_.nodes.size();
    const std::vector<std::vector<Read>> reads = Finder(graph_).backward_reads();
    for (size_t v = 0; v < reads.size(); ++v) {
      const auto value = make_id<ValueId>(v);
      if (reads[v].empty()) continue;
      const Codec codec =
          kept_as(encodable_of(value, reads[v]), graph_[value].type.dtype, wanted_[v]);
      if (codec == nullptr || !patterns.match(graph_[graph_[value].producer].name)) continue;
      kept_[v].codec = codec;
      for (const Read& read : reads[v]) kept_[v].signs |= read.how == Reading::sign;
    }
    find_masks(reads);
    for (size_t v = 0; v < reads.size(); ++v) encode(make_id<ValueId>(v));
    for (const Mask& mask : masks_) apply(mask);
    for (size_t v = 0; v < reads.size(); ++v) {
      for (const Read& read : reads[v]) {
        graph_.nodes[read.node].inputs[read.input] =
            decode(make_id<ValueId>(v), read.how, read.node);
      }
    }
    insert_nodes(graph_, first_, slots_);
    return rng_;
  }

 private:
  // How a value is kept.
  struct Kept {
    Codec codec = nullptr;
    bool signs = false;                 // some reader wants its sign
    bool zeros = false;                 // its code keeps zeros
    std::vector<ValueId> code, beside;  // `beside`: its signs, where the code loses them
  };

  // A gradient whose fused relu is taken out of it.
  struct Mask {
    size_t node;
    size_t input;    // what it masks
    ValueId result;  // of the relu
  };

  // Of the gradients that would find a mask from what is lossy. The relu's result is read as it is
  // kept anyway; else, a bit of it will do.
  void find_masks(const std::vector<std::vector<Read>>& reads) {
    for (size_t n = 0; n < first_; ++n) {
      const Node& node = graph_.nodes[n];
      if (node.op->masks_input == nullptr || node.op->masks_input(node.attrs) < 0) continue;
      const bool lossy = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        return is_lossy(kept_[input.at()].codec);
      });
      if (!lossy) continue;
      const ValueId result = graph_[node.differentiates].outputs[0];
      masks_.push_back({n, static_cast<size_t>(node.op->masks_input(node.attrs)), result});
      Kept& kept = kept_[result.at()];
      kept.signs = true;
      if (reads[result.at()].empty()) kept.codec = sign_codec();
    }
  }

  bool is_nonnegative(ValueId value) const {
    const Node* maker = &graph_[graph_[value].producer];
    while (maker->op->view) maker = &graph_[graph_[maker->inputs[0]].producer];
    return maker->op->nonnegative != nullptr && maker->op->nonnegative(maker->attrs);
  }

  void encode(ValueId value) {
    Kept& kept = kept_[value.at()];
    if (kept.codec == nullptr) return;
    builder_.set_backward(false);
    builder_.set_differentiates({});
    const bool loses_signs = kept.signs && is_lossy(kept.codec);
    kept.zeros = loses_signs && is_nonnegative(value);
    kept.code = add_encoder(kept.codec, value, kept.zeros);
    if (loses_signs && !kept.zeros) kept.beside = add_encoder(sign_codec(), value, false);
  }

  std::vector<ValueId> add_encoder(Codec codec, ValueId value, bool zeros) {
    const Builder::Scope scope(builder_, kScope), inside(builder_, codec->name);
    CodecBuilder nodes = {builder_, rng_};
    std::vector<ValueId> code = codec->encode(nodes, value, zeros);
    take_place(graph_[value].producer.at() + 1);
    return code;
  }

  // The value that a node reads in place of an encoded one.
  ValueId decode(ValueId value, Reading how, size_t node) {
    const Kept& kept = kept_[value.at()];
    if (kept.codec == nullptr) return value;
    const bool beside = how == Reading::sign && !kept.beside.empty();
    const Codec codec = beside ? sign_codec() : kept.codec;
    const Builder::Scope scope(builder_, kScope), inside(builder_, codec->name);
    stamp_as(node);
    const ValueId decoded =
        codec->decode(builder_, beside ? kept.beside : kept.code, graph_[value].type, kept.zeros);
    take_place(node);
    return decoded;
  }

  void apply(const Mask& mask) {
    const ValueId result = decode(mask.result, Reading::sign, mask.node);
    const Builder::Scope scope(builder_, kScope);
    stamp_as(mask.node);
    const ValueId masked =
        builder_.op("relu_backward", {result, graph_.nodes[mask.node].inputs[mask.input]});
    take_place(mask.node);
    graph_.nodes[mask.node].inputs[mask.input] = masked;
    graph_.nodes[mask.node].attrs.set("act", "none");
  }

  // Nodes made from now on belong to the gradient that the node does.
  void stamp_as(size_t node) {
    builder_.set_backward(true);
    builder_.set_differentiates(graph_.nodes[node].differentiates);
  }

  // Nodes made since the last call go in front of `slot`.
  void take_place(size_t slot) { slots_.resize(graph_.nodes.size() - first_, slot); }

  Graph& graph_;
  Builder builder_;
  ValueId rng_;
  std::vector<Codec> wanted_;  // by value
  std::vector<Kept> kept_;     // by value
  std::vector<Mask> masks_;
  size_t first_ = 0;           // where the nodes of this file begin
  std::vector<size_t> slots_;  // by those nodes: the node in front of which they belong
};

}  // namespace

Codec kept_as(const Encodable& value, DType dtype, Codec wanted) {
  if (wanted == nullptr) return nullptr;
  if (value.signs) return sign_codec();
  const Codec codec = value.curved ? gentle_codec(wanted) : wanted;
  const bool gains = !codec->signs_alone && codec->bits < 8 * static_cast<double>(size_of(dtype));
  return gains ? codec : nullptr;
}

std::vector<Encodable> find_encodable(const Graph& graph, const CodecSpec& spec) {
  Patterns patterns(spec);
  std::vector<Encodable> found;
  const std::vector<std::vector<Read>> reads = Finder(graph).backward_reads();
  for (size_t v = 0; v < reads.size(); ++v) {
    const auto value = make_id<ValueId>(v);
    if (reads[v].empty() || !patterns.match(graph[graph[value].producer].name)) continue;
    found.push_back(encodable_of(value, reads[v]));
  }
  patterns.check_used(graph);
  return found;
}

std::vector<Encoded> find_encoded(const Graph& graph) {
  const std::string inside = std::string(kScope) + ".";
  std::vector<Encoded> found;
  for (const Node& node : graph.nodes) {
    if (node.backward || !node.name.starts_with(inside)) continue;
    const std::string_view rest = std::string_view(node.name).substr(inside.size());
    const Codec codec = parse_codec(rest.substr(0, rest.find('.')));
    const auto same = std::find_if(found.begin(), found.end(), [&](const Encoded& other) {
      return other.value == node.inputs[0];
    });
    if (same == found.end()) {
      found.push_back({node.inputs[0], codec, node.outputs});
    } else {  // signs beside a code
      same->code.insert(same->code.end(), node.outputs.begin(), node.outputs.end());
      if (is_lossy(codec)) same->codec = codec;
    }
  }
  return found;
}

ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng) {
  user_check(spec.codec != nullptr || spec.only.empty(),
             "--codec-only says nothing without --codec; leave --codec-only out");
  if (spec.codec == nullptr || (spec.automatic && !spec.chosen)) return rng;
  Patterns patterns(spec);
  const ValueId used = Encoder(graph, spec, rng).run(patterns);
  if (!spec.automatic) patterns.check_used(graph);
  return used;
}

}  // namespace thimble
