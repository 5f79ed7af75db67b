// hf:FOLDER: a decoder of transformers, from the folder that save_pretrained wrote: config.json and
// safetensors, whole or in shards. Blocks of causal attention with rotary positions and a gated
// perceptron, each behind an rms_norm and beside a shortcut; every token predicts the next. The
// fused export of the same net (transform/fuse.h, thimble.torch.export) is this, node for node.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"
#include "model/next_token.h"
#include "model/zoo/decoder_config.h"

namespace thimble {
namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr int64_t kUsualLength = 512;

struct Decoder {
  std::shared_ptr<const DecoderConfig> config;  // read once for all graphs
  int64_t places = 0;  // rows of the tables of positions, whatever the length of a step
  NextToken end = {};
};

bool matches(std::string_view name) { return name.starts_with(kPrefix); }

Decoder& settings_of(ModelOptions& options) {
  Decoder& own = own_of<Decoder>(options);
  if (!own.config) {
    std::string folder = options.name.substr(kPrefix.size());
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    own.config = std::make_shared<const DecoderConfig>(read_decoder(folder));
  }
  return own;
}

void fields(ModelOptions& options, Fields& list) {
  list.whole("length", options.length, {.least = 1, .most = 1'000'000, .open = 0},
             {.help = "tokens of a row", .usual = "512, or fewer", .affects = affects::all});
  NextToken& end = own_of<Decoder>(options).end;
  list_loss_rows(end.loss_rows, list, affects::all);
  list_cache(end.cache, list);
}

void complete(ModelOptions& options, bool on_gpu) {
  Decoder& own = settings_of(options);
  own.end.complete(on_gpu);
  if (options.length == 0) options.length = std::min(kUsualLength, own.config->longest);
  user_check(options.length <= own.config->longest,
             "'{}' knows {} positions, fewer than a --length of {}; choose a shorter one",
             options.name, own.config->longest, options.length);
  own.places = std::max(own.places, options.length);
}

std::vector<RecordField> records(const ModelOptions& options) {
  ModelOptions read = options;
  const Decoder& own = settings_of(read);
  return next_token_records(options.length, own.config->vocabulary, own.end.documents);
}

void adopt(std::span<const RecordField> data, ModelOptions& options) {
  settings_of(options).end.adopt(data);
}

constexpr Intake kIntake = {records, adopt};

class Network {
 public:
  Network(const ModelOptions& options, const Decoder& own)
      : options_(options), own_(own), c_(*own.config), net_(options), b_(net_.build()) {}

  Model build() {
    const ValueId tokens = net_.tokens("tokens", c_.vocabulary);
    if (own_.end.documents && !options_.generating) {
      begins_ = net_.tokens("begins", options_.length);
    }
    if (cached()) net_.first_position();
    if (c_.turned.empty() || std::ranges::count(c_.turned, true) > 0) make_tables();
    const ValueId table = weight_of("model", "embed_tokens.weight");
    Attrs attrs;
    if (c_.padding >= 0 && c_.padding < c_.vocabulary) attrs.set("untrained", c_.padding);
    ValueId x = b_.op("embed", {table, tokens}, attrs);
    if (c_.scales_plus_one) {
      // As transformers has it, in f32.
      const double factor = static_cast<float>(std::sqrt(static_cast<double>(c_.width)));
      x = b_.op("scale", {x}, {{"factor", factor}});
    }
    for (int64_t layer = 0; layer < c_.layers; ++layer) x = block(layer, x);
    x = norm("model.norm", x);
    return close(x, c_.tied ? table : weight_of("lm_head", "weight"));
  }

 private:
  static constexpr Init kSmall = {Init::Kind::normal, 0.02};

  // A row for every token there is.
  ValueId weight_of(std::string_view scope_name, std::string_view name) {
    const Builder::Scope scope(b_, scope_name);
    return net_.weight(name, {c_.vocabulary, c_.width}, kSmall);
  }

  Model close(ValueId x, ValueId head) {
    const int64_t rows = options_.batch * options_.length;
    x = reshaped(x, {rows, c_.width});
    Model& model = net_.model();
    ForeignNames names = {.program = "transformers", .prefix = "model."};
    for (const Value& value : model.graph.values) {
      if (value.role == Role::frozen) {  // a table of positions: no file has it
        names.tensors.push_back({.own = value.name, .theirs = "", .constant = true});
      }
      if (value.role != Role::weight) continue;
      ForeignTensor tensor = {.own = value.name, .theirs = value.name};
      if (c_.tied && value.name == "model.embed_tokens.weight") tensor.also = {"lm_head.weight"};
      names.tensors.push_back(std::move(tensor));
    }
    model.foreign = std::move(names);
    model.first_values = c_.weights;
    return net_.finish_tokens(x, head, own_.end.loss_rows);
  }

  bool cached() const { return options_.generating && own_.end.cache > 0; }

  ValueId reshaped(ValueId x, const std::vector<int64_t>& dims) {
    return b_.op("reshape", {x}, {{"shape", dims}});
  }

  // Cosines and sines [places, D] of every position, whatever scales them.
  void make_tables() {
    const TensorType type = {{own_.places, c_.head_size}, DType::f32};
    std::vector<double> cosine, sine;
    for (int64_t t = 0; t < own_.places; ++t) {
      for (int64_t d = 0; d < c_.head_size; ++d) {
        const int64_t pair = d % (c_.head_size / 2);
        const double share = 2 * static_cast<double>(pair) / static_cast<double>(c_.head_size);
        const double divisor =
            c_.frequency_divisors.empty() ? 1 : c_.frequency_divisors[static_cast<size_t>(pair)];
        const double angle = static_cast<double>(t) / (std::pow(c_.base, share) * divisor);
        cosine.push_back(std::cos(angle));
        sine.push_back(std::sin(angle));
      }
    }
    cosine_ = b_.frozen("positions.cosine", type);
    sine_ = b_.frozen("positions.sine", type);
    net_.model().first_numbers = {{"positions.cosine", std::move(cosine)},
                                  {"positions.sine", std::move(sine)}};
  }

  ValueId norm(std::string_view name, ValueId x) {
    const Builder::Scope scope(b_, name);
    const TensorType channel = {{b_.shape(x).back()}, DType::f32};
    const Init start = {Init::Kind::constant, c_.scales_plus_one ? 0.0 : 1.0};
    ValueId gamma = b_.weight("weight", channel, start);
    if (c_.scales_plus_one) {
      gamma = b_.op("map", {gamma}, {{"of", std::string("shift")}, {"a", 1.0}});
    }
    return b_.op("rms_norm", {x, gamma}, {{"epsilon", c_.epsilon}});
  }

  ValueId linear(std::string_view name, ValueId x, int64_t out, bool biased) {
    if (biased && own_.end.joined) return net_.affine(name, x, out, kSmall);
    if (biased) return net_.linear(name, x, out, "none", kSmall);
    const Builder::Scope scope(b_, name);
    const ValueId w = net_.weight("weight", {out, b_.shape(x).back()}, kSmall);
    return b_.op("matmul", {x, w}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}});
  }

  // Of so many heads, [N,T,heads*D].
  ValueId turned(ValueId x, int64_t heads, int64_t layer) {
    const bool turns = c_.turned.empty() || c_.turned[static_cast<size_t>(layer)];
    if (!turns) return x;
    if (!cached()) return b_.op("rotary", {x, cosine_, sine_}, {{"heads", heads}});
    return b_.op("rotary", {x, cosine_, sine_, net_.first_position()},
                 {{"heads", heads}, {"continued", int64_t{1}}});
  }
  ValueId normed(std::string_view name, ValueId x, int64_t heads) {
    if (!c_.head_norms) return x;
    const std::vector<int64_t> apart = {options_.batch, options_.length, heads, c_.head_size};
    return reshaped(norm(name, reshaped(x, apart)),
                    {options_.batch, options_.length, heads * c_.head_size});
  }

  ValueId attention(ValueId x, int64_t layer) {
    const Builder::Scope scope(b_, "self_attn");
    const int64_t all = c_.heads * c_.head_size, shared = c_.groups * c_.head_size;
    ValueId q = normed("q_norm", linear("q_proj", x, all, c_.qkv_bias), c_.heads);
    ValueId k = normed("k_norm", linear("k_proj", x, shared, c_.qkv_bias), c_.groups);
    const ValueId v = linear("v_proj", x, shared, c_.qkv_bias);
    q = turned(q, c_.heads, layer);
    k = turned(k, c_.groups, layer);
    const double scale = std::pow(static_cast<double>(c_.head_size), -0.5);
    Attrs attrs = {
        {"heads", c_.heads}, {"groups", c_.groups}, {"causal", int64_t{1}}, {"scale", scale}};
    if (cached()) {
      return linear("o_proj", net_.cached_attention(q, k, v, attrs, own_.end.cache), c_.width,
                    c_.out_bias);
    }
    std::vector<ValueId> inputs = {q, k, v};
    if (begins_.valid()) {
      attrs.set("documents", int64_t{1});
      inputs.push_back(begins_);
    }
    return linear("o_proj", b_.op("attention", inputs, attrs), c_.width, c_.out_bias);
  }

  ValueId perceptron(ValueId x) {
    const Builder::Scope scope(b_, "mlp");
    const ValueId gate = linear("gate_proj", x, c_.inner, c_.inner_bias);
    const ValueId up = linear("up_proj", x, c_.inner, c_.inner_bias);
    return linear("down_proj", b_.op("gated", {gate, up}, {{"act", c_.act}}), c_.width,
                  c_.inner_bias);
  }

  ValueId block(int64_t layer, ValueId x) {
    const Builder::Scope scope(b_, fmt::format("model.layers.{}", layer));
    x = b_.op("add", {x, attention(norm("input_layernorm", x), layer)});
    return b_.op("add", {x, perceptron(norm("post_attention_layernorm", x))});
  }

  const ModelOptions& options_;
  const Decoder own_;
  const DecoderConfig& c_;
  Layers net_;
  Builder& b_;
  ValueId cosine_, sine_;
  ValueId begins_;  // of the document of each token, where rows hold several
};

Model build(const ModelOptions& options) {
  ModelOptions read = options;
  return Network(options, settings_of(read)).build();
}

}  // namespace

extern const ModelFamily family_decoder{
    .pattern = "hf:FOLDER",
    .summary =
        "a decoder of transformers (llama, mistral, qwen2, qwen3, smollm3, gemma), from its folder",
    .matches = matches,
    .batch = 1,
    .fields = fields,
    .build = build,
    .complete = complete,
    .intake = &kIntake,
    .data = "tokens"};

}  // namespace thimble
