#include "transform/encode_activations.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/order.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"none", "mask", "fp16", "bf16",
                                                    "int8", "int4", "int2"};
constexpr int64_t kWorthEncoding = 1024;  // elements

constexpr std::string_view kScope = "codec";  // of the nodes added here
constexpr std::string_view kAutomatic = "auto";

int bits_of(Codec codec) { return codec == Codec::int8 ? 8 : codec == Codec::int4 ? 4 : 2; }

// Of codes that are no masks: whether a number has more bits than they do.
bool gains(Codec codec, DType dtype) {
  return (codec != Codec::fp16 && codec != Codec::bf16) || size_of(dtype) > 2;
}

// Where a node reads a value.
struct Read {
  size_t node;
  size_t input;
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
        if (is_large_activation(node.inputs[i])) reads[node.inputs[i].at()].push_back({n, i});
      }
    }
    return reads;
  }

  bool only_signs(const std::vector<Read>& reads) const {
    return std::all_of(reads.begin(), reads.end(), [&](const Read& read) {
      const Node& node = graph_.nodes[read.node];
      return node.op->reads_sign != nullptr && node.op->reads_sign(node.attrs, read.input);
    });
  }

 private:
  // Weights that are cast or expanded for their readers are none: what follows from them alone is
  // made again from them.
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

class Encoder {
 public:
  Encoder(Graph& graph, const CodecSpec& spec, ValueId rng)
      : graph_(graph), builder_(graph), finder_(graph), rng_(rng) {
    codecs_.assign(graph.values.size(), Codec::none);
    if (spec.automatic) {
      for (const ValueCodec& choice : *spec.chosen) {
        const ValueId value = graph.find(choice.value);
        user_check(value.valid(),
                   "there is no '{}' in {} to keep as {}; what to encode was chosen for another "
                   "form of the net: with the --steps-at-once and --device of then it is there",
                   choice.value, graph.name, name_of(choice.codec));
        codecs_[value.at()] = choice.codec;
      }
      return;
    }
    codecs_.assign(graph.values.size(), spec.codec);
  }

  ValueId run(Patterns& patterns) {
    first_ = graph_.nodes.size();
    const std::vector<std::vector<Read>> reads = finder_.backward_reads();
    for (size_t v = 0; v < reads.size(); ++v) {
      const auto value = make_id<ValueId>(v);
      if (reads[v].empty() || codecs_[v] == Codec::none) continue;
      const Codec codec = finder_.only_signs(reads[v]) ? Codec::mask : codecs_[v];
      if (codec == Codec::mask && !finder_.only_signs(reads[v])) continue;
      if (!gains(codec, graph_[value].type.dtype)) continue;
      if (patterns.match(graph_[graph_[value].producer].name)) encode(value, codec, reads[v]);
    }
    insert_nodes(graph_, first_, slots_);
    return rng_;
  }

 private:
  void encode(ValueId value, Codec codec, const std::vector<Read>& reads) {
    const NodeId maker = graph_[value].producer;
    const Builder::Scope scope(builder_, kScope);
    builder_.set_backward(false);
    builder_.set_differentiates({});
    const std::vector<ValueId> code = add_encoder(value, codec);
    slots_.push_back(maker.at() + 1);
    builder_.set_backward(true);
    for (const Read& read : reads) {
      builder_.set_differentiates(graph_.nodes[read.node].differentiates);
      const ValueId decoded = add_decoder(code, codec, graph_[value].type);
      slots_.push_back(read.node);
      graph_.nodes[read.node].inputs[read.input] = decoded;
    }
  }

  std::vector<ValueId> add_encoder(ValueId value, Codec codec) {
    if (codec == Codec::mask) return builder_.apply("encode_signs", {value});
    if (codec == Codec::fp16) return builder_.apply("cast", {value}, {{"dtype", "f16"}});
    if (codec == Codec::bf16) return builder_.apply("cast", {value}, {{"dtype", "bf16"}});
    if (!rng_.valid()) rng_ = Builder(graph_).input("rng", {{3}, DType::i64});
    return builder_.apply(
        "encode_groups", {value, rng_},
        {{"bits", int64_t{bits_of(codec)}}, {"stream", builder_.next_random_stream()}});
  }

  ValueId add_decoder(const std::vector<ValueId>& code, Codec codec, const TensorType& type) {
    const std::string dtype(name_of(type.dtype));
    if (codec == Codec::fp16 || codec == Codec::bf16) {
      return builder_.op("cast", code, {{"dtype", dtype}});
    }
    const auto dims = type.shape.dims();
    Attrs attrs = {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}, {"dtype", dtype}};
    if (codec == Codec::mask) return builder_.op("decode_signs", code, attrs);
    return builder_.op("decode_groups", code, attrs.set("bits", int64_t{bits_of(codec)}));
  }

  Graph& graph_;
  Builder builder_;
  const Finder finder_;
  ValueId rng_;
  std::vector<Codec> codecs_;  // by value: what it is to be kept as
  size_t first_ = 0;           // where the nodes of this file begin
  std::vector<size_t> slots_;  // by those nodes: the node in front of which they belong
};

}  // namespace

std::string_view name_of(Codec codec) { return kNames[static_cast<size_t>(codec)]; }

Codec parse_codec(std::string_view name) {
  for (size_t c = 0; c < kNames.size(); ++c) {
    if (kNames[c] == name) return static_cast<Codec>(c);
  }
  user_error("there is no codec '{}'; known: none, mask, fp16, bf16, int8, int4, int2", name);
}

std::string to_string(const CodecSpec& spec) {
  const std::string name(name_of(spec.codec));
  return spec.automatic ? std::string(kAutomatic) + ":" + name : name;
}

CodecSpec parse_codec_spec(std::string_view spelling) {
  CodecSpec spec;
  spec.automatic = spelling.starts_with(kAutomatic);
  if (!spec.automatic) {
    spec.codec = parse_codec(spelling);
    return spec;
  }
  spelling.remove_prefix(kAutomatic.size());
  if (spelling.empty()) spelling = ":int4";
  user_check(spelling[0] == ':' && parse_codec(spelling.substr(1)) != Codec::none,
             "--codec auto takes the strongest codec it may choose behind a colon (auto:int8), not "
             "'{}'",
             spelling);
  spec.codec = parse_codec(spelling.substr(1));
  return spec;
}

Tier tier_of(const CodecSpec& spec) {
  const auto lossy = [](Codec codec) { return codec > Codec::mask; };
  if (!spec.automatic) return lossy(spec.codec) ? Tier::approximate : Tier::exact;
  const bool any = spec.chosen && std::any_of(spec.chosen->begin(), spec.chosen->end(),
                                              [&](const ValueCodec& v) { return lossy(v.codec); });
  return any ? Tier::approximate : Tier::exact;
}

void check_allowed(const CodecSpec& spec, Tier allowed) {
  user_check(tier_of(spec) <= allowed,
             "activations kept as {} are approximate, and --allow is {}; choose --codec mask, or "
             "leave --codec out",
             to_string(spec), name_of(allowed));
}

std::vector<Encodable> find_encodable(const Graph& graph, const CodecSpec& spec) {
  const Finder finder(graph);
  Patterns patterns(spec);
  std::vector<Encodable> found;
  const std::vector<std::vector<Read>> reads = finder.backward_reads();
  for (size_t v = 0; v < reads.size(); ++v) {
    const auto value = make_id<ValueId>(v);
    if (reads[v].empty() || !patterns.match(graph[graph[value].producer].name)) continue;
    found.push_back({value, finder.only_signs(reads[v])});
  }
  patterns.check_used(graph);
  return found;
}

std::vector<Encoded> find_encoded(const Graph& graph) {
  const std::string inside = std::string(kScope) + ".";
  std::vector<Encoded> found;
  for (const Node& node : graph.nodes) {
    if (node.backward || !node.name.starts_with(inside)) continue;
    const DType dtype = graph[node.outputs[0]].type.dtype;
    const auto groups = [&] {
      const int64_t bits = node.attrs.integer("bits");
      return bits == 8 ? Codec::int8 : bits == 4 ? Codec::int4 : Codec::int2;
    };
    const Codec codec = node.op->name == "encode_signs"    ? Codec::mask
                        : node.op->name == "encode_groups" ? groups()
                        : dtype == DType::f16              ? Codec::fp16
                                                           : Codec::bf16;
    found.push_back({node.inputs[0], codec, node.outputs});
  }
  return found;
}

ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng) {
  user_check(spec.codec != Codec::none || spec.only.empty(),
             "--codec-only says where to encode: give --codec as well");
  if (spec.codec == Codec::none || (spec.automatic && !spec.chosen)) return rng;
  Patterns patterns(spec);
  const ValueId used = Encoder(graph, spec, rng).run(patterns);
  if (!spec.automatic) patterns.check_used(graph);
  return used;
}

}  // namespace thimble
