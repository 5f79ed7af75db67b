// gpt: blocks of causal attention and a perceptron, each behind a layer_norm and beside a shortcut
// (GPT-2), on embedded tokens; every token predicts the next. gpt2-124m and its larger relatives are
// the published ones, whose weights can be read and written as `transformers` has them.
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"
#include "model/next_token.h"

namespace thimble {
namespace {

enum class Positions : uint8_t { learned, rotary };
std::string_view name_of(Positions positions) {
  return positions == Positions::learned ? "learned" : "rotary";
}

struct Gpt {
  int64_t layers = 6;
  int64_t heads = 6;
  int64_t width = 384;
  int64_t vocabulary = 0;  // 0: the data's
  Positions positions = Positions::learned;
  bool tied = true;
  int64_t places = 0;  // learned positions; 0: the length that the model is made for
  NextToken end = {};
};

struct Preset {
  std::string_view name;
  int64_t layers, heads, width;
};
constexpr std::array<Preset, 4> kPresets = {{{"gpt2-124m", 12, 12, 768},
                                             {"gpt2-355m", 24, 16, 1024},
                                             {"gpt2-774m", 36, 20, 1280},
                                             {"gpt2-1558m", 48, 25, 1600}}};
constexpr int64_t kBytes = 256;  // the vocabulary where neither name nor data say

const Preset* preset_of(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

bool matches(std::string_view name) {
  if (name == "gpt" || preset_of(name) != nullptr) return true;
  user_check(!name.starts_with("gpt2-"),
             "'{}' is not a model: of GPT-2 there are gpt2-124m, gpt2-355m, gpt2-774m and "
             "gpt2-1558m",
             name);
  return false;
}

// The settings of the name, before any other.
Gpt& settings_of(ModelOptions& options) {
  const bool fresh = !options.own.has<Gpt>();
  Gpt& gpt = own_of<Gpt>(options);
  const Preset* const preset = preset_of(options.name);
  if (fresh && preset != nullptr) {
    gpt = {.layers = preset->layers,
           .heads = preset->heads,
           .width = preset->width,
           .vocabulary = 50257,
           .places = 1024};
  }
  return gpt;
}

void fields(ModelOptions& options, Fields& list) {
  Gpt& gpt = settings_of(options);
  list_layers(gpt.layers, list);
  list.whole("heads", gpt.heads, {.least = 1, .most = 10'000},
             {.help = "heads of attention", .affects = affects::all});
  list.whole("width", gpt.width, {.least = 1, .most = kMostWidth},
             {.help = "channels", .affects = affects::all});
  list.whole(
      "vocabulary", gpt.vocabulary, {.least = 2, .most = kMostWidth, .open = 0},
      {.help = "tokens there are", .usual = "the data's, else 256", .affects = affects::all});
  list.whole("length", options.length, {.least = 1, .most = 1'000'000, .open = 0},
             {.help = "tokens of a row", .usual = "256; gpt2: 1024", .affects = affects::all});
  list.choice("positions", "kind of positions", 2, gpt.positions,
              {.help = "learned or rotary", .affects = affects::all});
  list.on_off("tied", gpt.tied,
              {.help = "embeddings also project onto the vocabulary", .affects = affects::all});
  list_loss_rows(gpt.end.loss_rows, list, affects::all);
  list_cache(gpt.end.cache, list);
  list_dropout(options, list);
}

void complete(ModelOptions& options, bool on_gpu) {
  Gpt& gpt = settings_of(options);
  gpt.end.complete(on_gpu);
  if (options.length == 0) options.length = gpt.places > 0 ? gpt.places : 256;
  if (gpt.places == 0) gpt.places = options.length;
  user_check(gpt.width % gpt.heads == 0,
             "a width of {} does not go into {} heads; choose a --width that is a multiple of it",
             gpt.width, gpt.heads);
  const bool rotary = gpt.positions == Positions::rotary;
  user_check(!rotary || gpt.width / gpt.heads % 2 == 0,
             "rotary positions turn pairs of channels, but a head has {}; choose another --heads "
             "or --width",
             gpt.width / gpt.heads);
  user_check(rotary || options.length <= gpt.places,
             "{} has {} learned positions, fewer than a --length of {}; choose --positions rotary "
             "or a shorter one",
             options.name, gpt.places, options.length);
}

int64_t vocabulary_of(const Gpt& gpt) { return gpt.vocabulary > 0 ? gpt.vocabulary : kBytes; }

std::vector<RecordField> records(const ModelOptions& options) {
  const Gpt gpt = own_of<Gpt>(options);
  return next_token_records(options.length, vocabulary_of(gpt), gpt.end.documents);
}

void adopt(std::span<const RecordField> data, ModelOptions& options) {
  Gpt& gpt = settings_of(options);
  const RecordField* const tokens = find_field(data, "tokens");
  if (tokens != nullptr && gpt.vocabulary == 0) gpt.vocabulary = tokens->limit;
  // Learned positions count from the beginning of the row.
  if (gpt.positions == Positions::rotary) gpt.end.adopt(data);
}

constexpr Intake kIntake = {records, adopt};

class Network {
 public:
  explicit Network(const ModelOptions& options)
      : options_(options), gpt_(own_of<Gpt>(options)), net_(options), b_(net_.build()) {}

  Model build() {
    const int64_t vocabulary = vocabulary_of(gpt_);
    const ValueId tokens = net_.tokens("tokens", vocabulary);
    if (gpt_.end.documents && !options_.generating) {
      begins_ = net_.tokens("begins", options_.length);
    }
    if (cached()) net_.first_position();
    const ValueId table = net_.weight("tokens.weight", {vocabulary, gpt_.width}, kSmall);
    ValueId x = net_.dropout(with_positions(b_.op("embed", {table, tokens})));
    for (int64_t layer = 0; layer < gpt_.layers; ++layer) x = block(layer, x);
    x = net_.layer_norm("norm", x);
    const int64_t rows = options_.batch * options_.length;
    x = b_.op("reshape", {x}, {{"shape", std::vector<int64_t>{rows, gpt_.width}}});
    const ValueId head =
        gpt_.tied ? table : net_.weight("head.weight", {vocabulary, gpt_.width}, kSmall);
    net_.model().foreign = foreign_names();
    return net_.finish_tokens(x, head, gpt_.end.loss_rows);
  }

 private:
  static constexpr Init kSmall = {Init::Kind::normal, 0.02};

  bool cached() const { return options_.generating && gpt_.end.cache > 0; }

  ValueId with_positions(ValueId x) {
    if (gpt_.positions == Positions::rotary) return x;
    ValueId places = net_.weight("positions.weight", {gpt_.places, gpt_.width}, kSmall);
    if (cached()) {
      places = b_.op("take_rows", {places, net_.positions()});
      const std::vector<int64_t> dims = {options_.batch, options_.length, gpt_.width};
      return b_.op("add", {x, b_.op("reshape", {places}, {{"shape", dims}})});
    }
    if (options_.length < gpt_.places) {
      places = b_.op("slice", {places},
                     {{"axis", int64_t{0}}, {"begin", int64_t{0}}, {"end", options_.length}});
    }
    return b_.op("add", {x, places});
  }

  ValueId linear(std::string_view name, ValueId x, int64_t out, Init init, ValueId addend = {}) {
    if (gpt_.end.joined) return net_.affine(name, x, out, init, addend);
    return net_.linear(name, x, out, "none", init);
  }

  // The end of a part of a block. Weights in front of the shortcut start smaller, so that the sum over all
  // blocks does not grow.
  ValueId project(ValueId x, ValueId shortcut) {
    const Init smaller = {Init::Kind::normal,
                          0.02 / std::sqrt(2 * static_cast<double>(gpt_.layers))};
    return linear("out", x, gpt_.width, smaller, adds_inside() ? shortcut : ValueId{});
  }
  // Whether the projection has added the shortcut.
  bool adds_inside() const { return gpt_.end.joined && !net_.drops(); }
  ValueId beside(ValueId shortcut, ValueId part) {
    return adds_inside() ? part : b_.op("add", {shortcut, net_.dropout(part)});
  }

  ValueId attention(ValueId x, ValueId shortcut) {
    const Builder::Scope scope(b_, "attention");
    ValueId qkv = linear("qkv", x, 3 * gpt_.width, kSmall);
    if (gpt_.positions == Positions::rotary) {
      Attrs attrs = {{"heads", 3 * gpt_.heads}, {"rotated", 2 * gpt_.heads}};
      std::vector<ValueId> inputs = {qkv};
      if (cached()) {
        attrs.set("continued", int64_t{1});
        inputs.push_back(net_.first_position());
      }
      qkv = b_.op("rotary", inputs, attrs);
    }
    if (cached()) return project(over_cache(qkv), shortcut);
    Attrs attrs = {{"heads", gpt_.heads}, {"causal", int64_t{1}}, {"packed", int64_t{1}}};
    std::vector<ValueId> inputs = {qkv};
    if (begins_.valid()) {
      attrs.set("documents", int64_t{1});
      inputs.push_back(begins_);
    }
    if (net_.drops()) {
      attrs.set("dropout", options_.dropout);
      attrs.set("stream", b_.next_random_stream());
      inputs.push_back(net_.rng());
    }
    return project(b_.op("attention", inputs, attrs), shortcut);
  }

  ValueId over_cache(ValueId qkv) {
    const auto part = [&](int64_t number) {
      const int64_t begin = number * gpt_.width;
      return b_.op("slice", {qkv},
                   {{"axis", int64_t{2}}, {"begin", begin}, {"end", begin + gpt_.width}});
    };
    const ValueId q = part(0), k = part(1), v = part(2);
    const Attrs attrs = {{"heads", gpt_.heads}, {"causal", int64_t{1}}};
    return net_.cached_attention(q, k, v, attrs, gpt_.end.cache);
  }

  ValueId perceptron(ValueId x, ValueId shortcut) {
    const Builder::Scope scope(b_, "mlp");
    x = linear("in", x, 4 * gpt_.width, kSmall);
    x = b_.op("gelu", {x}, {{"approximate", std::string("tanh")}});
    return project(x, shortcut);
  }

  ValueId block(int64_t layer, ValueId x) {
    const Builder::Scope scope(b_, fmt::format("block{}", layer));
    x = beside(x, attention(net_.layer_norm("norm1", x), x));
    return beside(x, perceptron(net_.layer_norm("norm2", x), x));
  }

  // As transformers' GPT2LMHeadModel has them; with rotary positions there is no such model.
  std::optional<ForeignNames> foreign_names() const {
    if (gpt_.positions == Positions::rotary) return std::nullopt;
    ForeignNames names = {.program = "transformers", .prefix = "transformer."};
    const auto add = [&](const std::string& own, std::string theirs, bool turned = false) {
      theirs = names.prefix + theirs;
      names.tensors.push_back({.own = own + ".weight", .theirs = theirs + ".weight"});
      if (turned) names.tensors.back().axes = {1, 0};  // [out,in] here is [in,out] there
      if (own != "tokens" && own != "positions") {
        names.tensors.push_back({own + ".bias", theirs + ".bias"});
      }
    };
    add("tokens", "wte");
    add("positions", "wpe");
    for (int64_t layer = 0; layer < gpt_.layers; ++layer) {
      const std::string own = fmt::format("block{}.", layer), theirs = fmt::format("h.{}.", layer);
      add(own + "norm1", theirs + "ln_1");
      add(own + "attention.qkv", theirs + "attn.c_attn", true);
      add(own + "attention.out", theirs + "attn.c_proj", true);
      add(own + "norm2", theirs + "ln_2");
      add(own + "mlp.in", theirs + "mlp.c_fc", true);
      add(own + "mlp.out", theirs + "mlp.c_proj", true);
    }
    add("norm", "ln_f");
    if (!gpt_.tied) names.tensors.push_back({"head.weight", "lm_head.weight"});
    return names;
  }

  const ModelOptions& options_;
  const Gpt gpt_;
  Layers net_;
  Builder& b_;
  ValueId begins_;  // of the document of each token, where rows hold several
};

Model build(const ModelOptions& options) { return Network(options).build(); }

}  // namespace

extern const ModelFamily family_gpt{
    .pattern = "gpt, gpt2-124m",
    .summary = "GPT: causal attention over tokens, each predicts the next",
    .matches = matches,
    .batch = 8,
    .fields = fields,
    .build = build,
    .complete = complete,
    .intake = &kIntake,
    .data = "tokens"};

}  // namespace thimble
