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

int bits_of(Codec codec) { return codec == Codec::int8 ? 8 : codec == Codec::int4 ? 4 : 2; }

// Where a node reads a value.
struct Read {
  size_t node;
  size_t input;
};

class Encoder {
 public:
  Encoder(Graph& graph, const CodecSpec& spec, ValueId rng)
      : graph_(graph), builder_(graph), spec_(spec), rng_(rng), used_(spec.only.size(), false) {}

  ValueId run() {
    first_ = graph_.nodes.size();
    find_activations();
    const std::vector<std::vector<Read>> reads = backward_reads();
    for (size_t v = 0; v < reads.size(); ++v) {
      if (!reads[v].empty()) encode(make_id<ValueId>(v), reads[v]);
    }
    insert_nodes(graph_, first_, slots_);
    for (size_t p = 0; p < used_.size(); ++p) {
      user_check(used_[p], "--codec-only '{}' matches no node of {} whose result {} would encode",
                 spec_.only[p], graph_.name, name_of(spec_.codec));
    }
    return rng_;
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

  bool is_chosen(const std::string& name) {
    bool chosen = spec_.only.empty();
    for (size_t p = 0; p < spec_.only.size(); ++p) {
      if (fnmatch(spec_.only[p].c_str(), name.c_str(), 0) != 0) continue;
      chosen = used_[p] = true;
    }
    return chosen;
  }

  void encode(ValueId value, const std::vector<Read>& reads) {
    const bool signs = std::all_of(reads.begin(), reads.end(), [&](const Read& read) {
      const Node& node = graph_.nodes[read.node];
      return node.op->reads_sign != nullptr && node.op->reads_sign(node.attrs, read.input);
    });
    const Codec codec = signs ? Codec::mask : spec_.codec;
    const bool narrow = size_of(graph_[value].type.dtype) <= 2;
    const bool gains = codec == Codec::mask                           ? signs
                       : codec == Codec::fp16 || codec == Codec::bf16 ? !narrow
                                                                      : true;
    const NodeId maker = graph_[value].producer;
    if (!gains || !is_chosen(graph_[maker].name)) return;

    const Builder::Scope scope(builder_, "codec");
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
  const CodecSpec& spec_;
  ValueId rng_;
  std::vector<bool> used_;           // by pattern: it chose something
  std::vector<bool> is_activation_;  // by value: it depends on what the step is given
  size_t first_ = 0;                 // where the nodes of this file begin
  std::vector<size_t> slots_;        // by those nodes: the node in front of which they belong
};

}  // namespace

std::string_view name_of(Codec codec) { return kNames[static_cast<size_t>(codec)]; }

Codec parse_codec(std::string_view name) {
  for (size_t c = 0; c < kNames.size(); ++c) {
    if (kNames[c] == name) return static_cast<Codec>(c);
  }
  user_error("there is no codec '{}'; known: none, mask, fp16, bf16, int8, int4, int2", name);
}

Tier tier_of(const CodecSpec& spec) {
  return spec.codec <= Codec::mask ? Tier::exact : Tier::approximate;
}

void check_allowed(const CodecSpec& spec, Tier allowed) {
  user_check(tier_of(spec) <= allowed,
             "activations kept as {} are approximate, and --allow is {}; choose --codec mask, or "
             "leave --codec out",
             name_of(spec.codec), name_of(allowed));
}

ValueId encode_activations(Graph& graph, const CodecSpec& spec, ValueId rng) {
  user_check(spec.codec != Codec::none || spec.only.empty(),
             "--codec-only says where to encode: give --codec as well");
  return spec.codec == Codec::none ? rng : Encoder(graph, spec, rng).run();
}

}  // namespace thimble
