// dynamicconv, lightconv: a translator whose layers mix positions by convolutions over time in place
// of self-attention (Wu et al. 2019). Layers of the encoder are a convolution and a perceptron, those
// of the decoder have attention to the encoder's result between them; each is beside a shortcut and in
// front of a layer_norm. Convolutions have a linear layer before and behind, and softmaxed kernels:
// computed from every position (dynamicconv) or learned (lightconv). dynamicconv-iwslt and
// lightconv-iwslt are the published models for IWSLT'14 German-English.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/layers.h"
#include "recipe/field.h"

namespace thimble {
namespace {

struct Translator {
  int64_t width = 256;
  int64_t inner = 0;  // of the perceptrons; 0: twice the width
  int64_t heads = 4;
  int64_t encoder = 4, decoder = 3;  // layers
  int64_t kernel = 31;               // the widest; see kernel_of
  double attention_dropout = 0.1;
  double kernel_dropout = 0.1;
  int64_t source_vocabulary = 0, target_vocabulary = 0;  // 0: the data's
};

constexpr int64_t kPad = 0;                                  // the token that fills rows up
constexpr int64_t kSourceWords = 8848, kTargetWords = 6632;  // of IWSLT'14 with 10,000 merges

bool learns_kernels(std::string_view name) { return name.starts_with("lightconv"); }
bool is_published(std::string_view name) { return name.ends_with("-iwslt"); }

bool matches(std::string_view name) {
  for (const std::string_view family : {"dynamicconv", "lightconv"}) {
    if (name == family || name == std::string(family) + "-iwslt") return true;
    user_check(!name.starts_with(family), "'{}' is not a model: there are {} and {}-iwslt", name,
               family, family);
  }
  return false;
}

// What the name says, before any setting.
Translator& settings_of(ModelOptions& options) {
  const bool fresh = std::any_cast<Translator>(&options.own) == nullptr;
  Translator& net = own_of<Translator>(options);
  if (fresh && is_published(options.name)) {
    net.width = 512;
    net.inner = 1024;
    net.encoder = 7;
    net.decoder = 6;
    options.dropout = 0.3;
  }
  return net;
}

void fields(ModelOptions& options, Fields& list) {
  Translator& net = settings_of(options);
  constexpr unsigned kAll = matters::graph | matters::bits | matters::time;
  list.whole("width", net.width, {.least = 4, .most = kMostWidth},
             {.help = "channels", .matters = kAll});
  list.whole("inner", net.inner, {.least = 1, .most = kMostWidth, .open = 0},
             {.help = "units of the perceptrons", .usual = "twice the width", .matters = kAll});
  list.whole("heads", net.heads, {.least = 1, .most = 10'000},
             {.help = "heads of convolutions and of attention", .matters = kAll});
  list.whole("encoder", net.encoder, {.least = 1, .most = 1'000},
             {.help = "layers of the encoder", .matters = kAll});
  list.whole("decoder", net.decoder, {.least = 1, .most = 1'000},
             {.help = "layers of the decoder", .matters = kAll});
  list.whole("kernel", net.kernel, {.least = 1, .most = 63},
             {.help = "widest kernel: layers have 3, 7, 15, ... up to it", .matters = kAll});
  list.whole("length", options.length, {.least = 1, .most = 100'000, .open = 0},
             {.help = "tokens of a row", .usual = "64; iwslt: 125", .matters = kAll});
  list.whole("source-vocabulary", net.source_vocabulary,
             {.least = 4, .most = kMostWidth, .open = 0},
             {.help = "tokens of the source", .usual = "the data's, else 8848", .matters = kAll});
  list.whole("target-vocabulary", net.target_vocabulary,
             {.least = 4, .most = kMostWidth, .open = 0},
             {.help = "tokens of the target", .usual = "the data's, else 6632", .matters = kAll});
  list_dropout(options, list);
  const RealRange share = {.least = 0, .most = 1, .below = true};
  list.real("attention-dropout", net.attention_dropout, share,
            {.help = "share of attention dropped", .placeholder = "P", .matters = kAll});
  list.real(
      "kernel-dropout", net.kernel_dropout, share,
      {.help = "share of the softmaxed kernels dropped", .placeholder = "P", .matters = kAll});
}

void complete(ModelOptions& options, bool) {
  Translator& net = settings_of(options);
  if (options.length == 0) options.length = is_published(options.name) ? 125 : 64;
  if (net.inner == 0) net.inner = 2 * net.width;
  user_check(net.width % net.heads == 0,
             "a width of {} does not go into {} heads; choose a --width that is a multiple of it",
             net.width, net.heads);
}

int64_t source_words(const Translator& net) {
  return net.source_vocabulary > 0 ? net.source_vocabulary : kSourceWords;
}
int64_t target_words(const Translator& net) {
  return net.target_vocabulary > 0 ? net.target_vocabulary : kTargetWords;
}

std::vector<RecordField> records(const ModelOptions& options) {
  const auto net = own_of<Translator>(options);
  const auto tokens = [&](const char* name, int64_t limit) {
    return RecordField{
        .name = name, .dtype = DType::i32, .shape = {options.length}, .limit = limit};
  };
  return {tokens("source", source_words(net)),
          {.name = "source_length", .dtype = DType::i32},
          tokens("target_in", target_words(net)),
          tokens("targets", target_words(net))};
}

void adopt(std::span<const RecordField> data, ModelOptions& options) {
  Translator& net = settings_of(options);
  const auto take = [&](const char* name, int64_t& vocabulary) {
    const RecordField* const field = find_field(data, name);
    if (field != nullptr && vocabulary == 0) vocabulary = field->limit;
  };
  take("source", net.source_vocabulary);
  take("target_in", net.target_vocabulary);
}

constexpr Intake kIntake = {records, adopt};

class Network {
 public:
  explicit Network(const ModelOptions& options)
      : options_(options),
        own_(own_of<Translator>(options)),
        net_(options),
        b_(net_.build()),
        rows_(options.batch),
        length_(options.length) {}

  Model build() {
    const ValueId source = net_.tokens("source", source_words(own_));
    length_of_source_ = b_.input("source_length", {{rows_}, DType::i32});
    net_.model().feeds.push_back({.value = length_of_source_, .field = "source_length"});
    const ValueId target = net_.tokens("target_in", target_words(own_));
    const ValueId memory = encode(source);
    ValueId x = decode(target, memory);
    x = b_.op("reshape", {x}, {{"shape", std::vector<int64_t>{rows_ * length_, own_.width}}});
    return net_.finish_tokens(
        x, net_.weight("head.weight", {target_words(own_), own_.width}, table_init()));
  }

 private:
  // Embeddings, their padding zero, and positions.
  ValueId embed(ValueId tokens, int64_t vocabulary) {
    const ValueId table = net_.weight("tokens.weight", {vocabulary, own_.width}, table_init());
    const ValueId x = b_.op("embed", {table, tokens},
                            {{"pad", kPad}, {"scale", std::sqrt(static_cast<double>(own_.width))}});
    const ValueId places = b_.op(
        "sinusoid", {tokens},
        {{"width", own_.width}, {"pad", kPad}, {"dtype", std::string(name_of(options_.storage))}});
    return net_.dropout(b_.op("add", {x, places}));
  }

  ValueId encode(ValueId source) {
    const Builder::Scope scope(b_, "encoder");
    ValueId x = embed(source, source_words(own_));
    for (int64_t layer = 0; layer < own_.encoder; ++layer) {
      const Builder::Scope of_layer(b_, fmt::format("layer{}", layer));
      x = beside("conv", x, convolution(x, kernel_of(layer), false));
      x = beside("mlp", x, perceptron(x));
    }
    return x;
  }

  ValueId decode(ValueId target, ValueId memory) {
    const Builder::Scope scope(b_, "decoder");
    ValueId x = embed(target, target_words(own_));
    for (int64_t layer = 0; layer < own_.decoder; ++layer) {
      const Builder::Scope of_layer(b_, fmt::format("layer{}", layer));
      x = beside("conv", x, convolution(x, kernel_of(layer), true));
      x = beside("attention", x, attention(x, memory));
      x = beside("mlp", x, perceptron(x));
    }
    return x;
  }

  // A branch beside the shortcut, normalised behind.
  ValueId beside(std::string_view name, ValueId shortcut, ValueId branch) {
    return net_.layer_norm(fmt::format("{}.norm", name),
                           b_.op("add", {shortcut, net_.dropout(branch)}));
  }

  ValueId linear(std::string_view name, ValueId x, int64_t out, std::string_view act = "none") {
    return net_.linear(name, x, out, act, glorot(b_.shape(x).back(), out));
  }

  // In the decoder a position sees those before it; in the encoder all around it but for padding.
  ValueId convolution(ValueId x, int64_t kernel, bool causal) {
    const Builder::Scope scope(b_, "conv");
    x = linear("in", x, own_.width);
    const bool learned = learns_kernels(options_.name);
    ValueId kernels;
    if (learned) {
      kernels =
          net_.weight("kernel.weight", {own_.heads, kernel}, glorot(kernel, own_.heads * kernel));
    } else {
      const int64_t taps = own_.heads * kernel;
      const ValueId w = net_.weight("kernel.weight", {taps, own_.width}, glorot(own_.width, taps));
      kernels = b_.op("matmul", {x, w}, {{"transpose_b", int64_t{1}}});
    }
    Attrs attrs = {{"heads", own_.heads}, {"kernel", kernel}, {"causal", int64_t{causal}}};
    std::vector<ValueId> inputs = {x, kernels};
    if (!causal) inputs.push_back(length_of_source_);
    attrs.set("padded", int64_t{!causal});
    add_dropout(own_.kernel_dropout, attrs, inputs);
    x = b_.op(learned ? "light_conv" : "dynamic_conv", inputs, attrs);
    return linear("out", x, own_.width);
  }

  ValueId attention(ValueId x, ValueId memory) {
    const Builder::Scope scope(b_, "attention");
    std::vector<ValueId> inputs = {linear("query", x, own_.width),
                                   linear("key", memory, own_.width),
                                   linear("value", memory, own_.width), length_of_source_};
    Attrs attrs = {{"heads", own_.heads}, {"padded", int64_t{1}}};
    add_dropout(own_.attention_dropout, attrs, inputs);
    return linear("out", b_.op("attention", inputs, attrs), own_.width);
  }

  ValueId perceptron(ValueId x) {
    const Builder::Scope scope(b_, "mlp");
    return linear("out", linear("in", x, own_.inner, "relu"), own_.width);
  }

  void add_dropout(double p, Attrs& attrs, std::vector<ValueId>& inputs) {
    if (!options_.training || p == 0) return;
    attrs.set("dropout", p);
    attrs.set("stream", b_.next_random_stream());
    inputs.push_back(net_.rng());
  }

  // 3, 7, 15, ... up to the widest.
  int64_t kernel_of(int64_t layer) const {
    return std::min((int64_t{4} << std::min<int64_t>(layer, 40)) - 1, own_.kernel);
  }
  Init table_init() const {
    return {Init::Kind::normal, 1 / std::sqrt(static_cast<double>(own_.width))};
  }
  static Init glorot(int64_t in, int64_t out) {
    return {Init::Kind::uniform, std::sqrt(6.0 / static_cast<double>(in + out))};
  }

  const ModelOptions& options_;
  const Translator own_;
  Layers net_;
  Builder& b_;
  const int64_t rows_, length_;
  ValueId length_of_source_;
};

Model build(const ModelOptions& options) { return Network(options).build(); }

}  // namespace

extern const ModelFamily family_dynamicconv;
const ModelFamily family_dynamicconv{
    .pattern = "dynamicconv, lightconv, dynamicconv-iwslt, lightconv-iwslt",
    .summary = "translation by convolutions over time, an encoder and a decoder",
    .matches = matches,
    .batch = 32,
    .fields = fields,
    .build = build,
    .complete = complete,
    .intake = &kIntake,
    .data = "pairs"};

}  // namespace thimble
