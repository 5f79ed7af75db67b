// dynamicconv, lightconv: a translator whose layers mix positions by convolutions over time in
// place of self-attention (Wu et al. 2019). Layers of the encoder are a convolution and a
// perceptron. Layers of the decoder have attention to the encoder's result between the two. Each
// part has a shortcut beside it and a layer_norm behind it. Convolutions have a linear layer before
// and behind, and softmaxed kernels: computed from every position (dynamicconv) or learned
// (lightconv). dynamicconv-iwslt and lightconv-iwslt are the published models for IWSLT'14
// German-English.
//
// In training, rows can go through it in slices, all of them through a layer before the first goes
// on:
//
//   rows 0-31    ─▶ layer 0 ─┐ ┌▶ layer 1 ─┐ ┌▶ ...
//   rows 32-63   ─▶ layer 0 ─┤ ├▶ layer 1 ─┤ ├▶ ...
//   rows 64-95   ─▶ layer 0 ─┘ └▶ layer 1 ─┘ └▶ ...
//
// Between layers the values of all rows are there; inside of one, where that is recomputed, those
// of a slice. Unlike with microbatches, a layer's gradients are complete when its backward pass is,
// so that its weights move then, and nothing keeps the gradients of all of them.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"
#include "model/loss_rows.h"

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
  int64_t slices = 1;
  int64_t loss_rows = 0;  // 0: the op's own
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

// The settings of the name, before any other.
Translator& settings_of(ModelOptions& options) {
  const bool fresh = !options.own.has<Translator>();
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
  list.whole("width", net.width, {.least = 4, .most = kMostWidth},
             {.help = "channels", .affects = affects::all});
  list.whole(
      "inner", net.inner, {.least = 1, .most = kMostWidth, .open = 0},
      {.help = "units of the perceptrons", .usual = "twice the width", .affects = affects::all});
  list.whole("heads", net.heads, {.least = 1, .most = 10'000},
             {.help = "heads of convolutions and of attention", .affects = affects::all});
  list.whole("encoder", net.encoder, {.least = 1, .most = 1'000},
             {.help = "layers of the encoder", .affects = affects::all});
  list.whole("decoder", net.decoder, {.least = 1, .most = 1'000},
             {.help = "layers of the decoder", .affects = affects::all});
  list.whole(
      "kernel", net.kernel, {.least = 1, .most = 63},
      {.help = "widest kernel: layers have 3, 7, 15, ... up to it", .affects = affects::all});
  list.whole("length", options.length, {.least = 1, .most = 100'000, .open = 0},
             {.help = "tokens of a row", .usual = "64; iwslt: 125", .affects = affects::all});
  list.whole(
      "source-vocabulary", net.source_vocabulary, {.least = 4, .most = kMostWidth, .open = 0},
      {.help = "tokens of the source", .usual = "the data's, else 8848", .affects = affects::all});
  list.whole(
      "target-vocabulary", net.target_vocabulary, {.least = 4, .most = kMostWidth, .open = 0},
      {.help = "tokens of the target", .usual = "the data's, else 6632", .affects = affects::all});
  list.whole("slices", net.slices, {.least = 1, .most = 4096},
             {.help = "parts of the rows that go through each layer one after another",
              .more = "parts of the rows that go through each layer one after another: "
                      "inside of a layer, memory is that of a part, see [slices](#slices)",
              .affects = affects::all});
  list_loss_rows(net.loss_rows, list, affects::all);
  list_dropout(options, list);
  const RealRange share = {.least = 0, .most = 1, .below = true};
  list.real("attention-dropout", net.attention_dropout, share,
            {.help = "share of attention dropped", .placeholder = "P", .affects = affects::all});
  list.real("kernel-dropout", net.kernel_dropout, share,
            {.help = "share of the softmaxed kernels dropped",
             .placeholder = "P",
             .affects = affects::all});
}

void complete(ModelOptions& options, bool on_gpu) {
  Translator& net = settings_of(options);
  if (on_gpu && net.loss_rows == 0) net.loss_rows = kLossRowsOnGpu;
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
        length_(options.length) {
    const int64_t slices = options.training ? std::min(own_.slices, rows_) : 1;
    for (int64_t s = 0; s < slices; ++s) {
      slices_.push_back({s * rows_ / slices, (s + 1) * rows_ / slices});
    }
  }

  Model build() {
    const ValueId source = net_.tokens("source", source_words(own_));
    const ValueId lengths = b_.input("source_length", {{rows_}, DType::i32});
    net_.model().feeds.push_back({.value = lengths, .field = "source_length"});
    const ValueId target = net_.tokens("target_in", target_words(own_));
    lengths_of_sources_ = sliced(lengths);
    std::vector<ValueId> x = decode(sliced(target), encode(sliced(source)));
    for (ValueId& rows : x) {
      const int64_t tokens = b_.shape(rows)[0] * length_;
      rows = b_.op("reshape", {rows}, {{"shape", std::vector<int64_t>{tokens, own_.width}}});
    }
    const ValueId head = net_.weight("head.weight", {target_words(own_), own_.width}, table_init());
    return x.size() == 1 ? net_.finish_tokens(x[0], head, own_.loss_rows) : finish(x, head);
  }

 private:
  struct Rows {
    int64_t begin, end;
  };

  // The slices of a value with a row for each record.
  std::vector<ValueId> sliced(ValueId all) {
    std::vector<ValueId> parts;
    for (const Rows& rows : slices_) {
      parts.push_back(
          slices_.size() == 1
              ? all
              : b_.op("slice", {all},
                      {{"axis", int64_t{0}}, {"begin", rows.begin}, {"end", rows.end}}));
    }
    return parts;
  }

  // The sums of what the slices lose.
  Model finish(const std::vector<ValueId>& x, ValueId head) {
    const std::vector<ValueId> targets = sliced(net_.tokens("targets", target_words(own_)));
    std::vector<ValueId> sums = net_.token_loss(x[0], head, targets[0], own_.loss_rows);
    for (size_t s = 1; s < x.size(); ++s) {
      const std::vector<ValueId> made = net_.token_loss(x[s], head, targets[s], own_.loss_rows);
      for (const size_t k : {size_t{0}, size_t{2}, size_t{3}}) {
        sums[k] = b_.op("add", {sums[k], made[k]});
      }
    }
    return net_.finish_token_losses(sums[0], sums[2], sums[3]);
  }

  // The results of `layer` for every slice, one after another.
  template <class Layer>
  void through(std::vector<ValueId>& x, Layer&& layer) {
    for (slice_ = 0; slice_ < x.size(); ++slice_) x[slice_] = layer(x[slice_]);
  }

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

  std::vector<ValueId> encode(std::vector<ValueId> x) {
    const Builder::Scope scope(b_, "encoder");
    through(x, [&](ValueId tokens) { return embed(tokens, source_words(own_)); });
    for (int64_t layer = 0; layer < own_.encoder; ++layer) {
      const Builder::Scope of_layer(b_, fmt::format("layer{}", layer));
      through(x, [&](ValueId in) {
        return beside("conv", in, convolution(in, kernel_of(layer), false));
      });
      through(x, [&](ValueId in) { return beside("mlp", in, perceptron(in)); });
    }
    return x;
  }

  std::vector<ValueId> decode(std::vector<ValueId> x, const std::vector<ValueId>& memory) {
    const Builder::Scope scope(b_, "decoder");
    through(x, [&](ValueId tokens) { return embed(tokens, target_words(own_)); });
    for (int64_t layer = 0; layer < own_.decoder; ++layer) {
      const Builder::Scope of_layer(b_, fmt::format("layer{}", layer));
      through(x, [&](ValueId in) {
        return beside("conv", in, convolution(in, kernel_of(layer), true));
      });
      through(x,
              [&](ValueId in) { return beside("attention", in, attention(in, memory[slice_])); });
      through(x, [&](ValueId in) { return beside("mlp", in, perceptron(in)); });
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
    if (!causal) inputs.push_back(lengths_of_sources_[slice_]);
    attrs.set("padded", int64_t{!causal});
    add_dropout(own_.kernel_dropout, attrs, inputs);
    x = b_.op(learned ? "light_conv" : "dynamic_conv", inputs, attrs);
    return linear("out", x, own_.width);
  }

  ValueId attention(ValueId x, ValueId memory) {
    const Builder::Scope scope(b_, "attention");
    std::vector<ValueId> inputs = {
        linear("query", x, own_.width), linear("key", memory, own_.width),
        linear("value", memory, own_.width), lengths_of_sources_[slice_]};
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
  std::vector<Rows> slices_;
  std::vector<ValueId> lengths_of_sources_;  // by slice
  size_t slice_ = 0;                         // the one that is being built
};

Model build(const ModelOptions& options) { return Network(options).build(); }

}  // namespace

extern const ModelFamily family_dynamicconv{
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
