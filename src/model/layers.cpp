#include "model/layers.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/kv_cache.h"

namespace thimble {
namespace {

constexpr Init kOnes = {Init::Kind::constant, 1};

}  // namespace

Layers::Layers(const ModelOptions& options) : options_(options), builder_(model_.graph) {}

ValueId Layers::images() {
  const Shape& image = options_.image;
  const Shape batch = {options_.batch, image[0], image[1], image[2]};
  const TensorType channel = {{image[2]}, DType::f32};
  const ValueId pixels = builder_.input("pixels", {batch, DType::u8});
  const ValueId staging = builder_.input("staging", {image, DType::u8});
  const ValueId mean = builder_.statistic("pixel.mean", channel);
  const ValueId inverse_deviation = builder_.statistic("pixel.inverse_deviation", channel, kOnes);
  model_.feeds.push_back({.value = pixels, .field = "pixels", .staging = staging});
  model_.from_data = {mean, inverse_deviation};
  return builder_.op("normalize_image", {pixels, mean, inverse_deviation},
                     {{"dtype", std::string(name_of(options_.storage))}});
}

ValueId Layers::sequence(int64_t features) {
  const ValueId sequence =
      builder_.input("sequence", {{options_.length, options_.batch, features}, DType::f32});
  model_.feeds.push_back({.value = sequence, .field = "sequence", .row_axis = 1});
  return stored(sequence);
}

ValueId Layers::stored(ValueId value) {
  if (builder_.type(value).dtype == options_.storage) return value;
  return builder_.op("cast", {value}, {{"dtype", std::string(name_of(options_.storage))}});
}

ValueId Layers::weight(std::string_view name, const Shape& shape, Init init) {
  return stored(named(name, {shape, options_.master ? DType::f32 : options_.storage}, init));
}

ValueId Layers::named(std::string_view name, TensorType type, Init init) {
  const auto [known, made] = weights_.try_emplace(builder_.scoped(name));
  if (made) known->second = builder_.weight(name, type, init);
  internal_check(builder_.type(known->second) == type, "a weight is used with another shape");
  return known->second;
}

ValueId Layers::conv(std::string_view name, ValueId x, int64_t out, int64_t kernel, int64_t stride,
                     int64_t pad) {
  const Builder::Scope scope(builder_, name);
  if (pad < 0) pad = kernel / 2;
  const double deviation = std::sqrt(2.0 / static_cast<double>(kernel * kernel * out));
  const ValueId w = weight("weight", {out, kernel, kernel, builder_.shape(x).back()},
                           {Init::Kind::normal, deviation});
  return builder_.op("conv2d", {x, w}, {{"stride", stride}, {"pad", pad}, {"groups", int64_t{1}}});
}

ValueId Layers::norm(std::string_view name, ValueId x, std::string_view act) {
  const Builder::Scope scope(builder_, name);
  const TensorType channel = {{builder_.shape(x).back()}, DType::f32};
  const ValueId gamma = builder_.weight("weight", channel, kOnes);
  const ValueId beta = builder_.weight("bias", channel, {});
  return options_.norm == Norm::group ? group_norm(x, gamma, beta, act)
                                      : batch_norm(x, gamma, beta, act);
}

// Mean and variance of all ranks' rows. The variance is the mean of the ranks' own and of how far their
// means are from the common one, squared: nothing cancels.
std::vector<ValueId> Layers::over_ranks(const std::vector<ValueId>& here) {
  const auto mean = [&](ValueId value) {
    const ValueId sum = builder_.op("all_reduce", {value}, {{"ranks", int64_t{options_.ranks}}});
    return builder_.op("scale", {sum}, {{"factor", 1.0 / options_.ranks}});
  };
  const ValueId common = mean(here[0]);
  const ValueId apart = builder_.op("sub", {here[0], common});
  return {common, mean(builder_.op("add", {here[1], builder_.op("mul", {apart, apart})}))};
}

// Every rank's rows, rank after rank.
ValueId Layers::of_all_ranks(ValueId channels) {
  const int64_t count = builder_.shape(channels).elements(), ranks = options_.ranks;
  return builder_.op("all_gather", {channels},
                     {{"ranks", ranks}, {"part", count}, {"shape", std::vector{ranks * count}}});
}

ValueId Layers::batch_norm(ValueId x, ValueId gamma, ValueId beta, std::string_view act) {
  const Shape shape = builder_.shape(x);
  const TensorType channel = {{shape.back()}, DType::f32};
  const int64_t seen = shape.elements() / shape.back();
  user_check(!options_.training || seen > 1,
             "the norm of '{}' would see one number a channel, which has no variance; choose a "
             "larger --batch or --image, a --microbatch that leaves no single row, or --norm group",
             builder_.graph()[gamma].name);
  const ValueId running_mean = builder_.statistic("running_mean", channel);
  const ValueId running_var = builder_.statistic("running_var", channel, kOnes);
  const bool own = options_.training && options_.norm != Norm::carried;
  Attrs attrs = {
      {"epsilon", options_.norm_epsilon}, {"act", std::string(act)}, {"training", int64_t{own}}};
  std::vector<ValueId> statistics = {running_mean, running_var};
  if (options_.training) {
    std::vector<ValueId> here = builder_.apply("batch_norm_stats", {x});
    int64_t count = seen;
    std::vector<ValueId> all = here;  // that running statistics move towards
    if (options_.norm == Norm::synced) {
      all = here = over_ranks(here);
      count *= options_.ranks;
      attrs.set("ranks", int64_t{options_.ranks});
    } else if (options_.ranks > 1) {
      all = {of_all_ranks(here[0]), of_all_ranks(here[1])};
    }
    const std::vector<ValueId> moved =
        builder_.apply("running_stats_update", {running_mean, running_var, all[0], all[1]},
                       {{"momentum", options_.norm_momentum}, {"count", count}});
    statistics = own ? here : moved;
  }
  return builder_.op("batch_norm", {x, statistics[0], statistics[1], gamma, beta}, attrs);
}

ValueId Layers::group_norm(ValueId x, ValueId gamma, ValueId beta, std::string_view act) {
  // Wu & He 2018 use 32 groups; narrow layers get groups of at least four channels.
  const int64_t channels = builder_.shape(x).back();
  int64_t groups = std::clamp<int64_t>(channels / 4, 1, 32);
  while (channels % groups != 0) --groups;
  return builder_.op(
      "group_norm", {x, gamma, beta},
      {{"groups", groups}, {"epsilon", options_.norm_epsilon}, {"act", std::string(act)}});
}

ValueId Layers::linear(std::string_view name, ValueId x, int64_t out, std::string_view act) {
  const double bound = 1 / std::sqrt(static_cast<double>(builder_.shape(x).back()));
  return linear(name, x, out, act, {Init::Kind::uniform, bound});
}

ValueId Layers::linear(std::string_view name, ValueId x, int64_t out, std::string_view act,
                       Init init) {
  const Builder::Scope scope(builder_, name);
  const auto [w, bias] = linear_weights(x, out, init);
  const ValueId product =
      builder_.op("matmul", {x, w}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{1}}});
  return builder_.op("bias_act", {product, bias}, {{"act", std::string(act)}});
}

ValueId Layers::affine(std::string_view name, ValueId x, int64_t out, Init init, ValueId addend) {
  const Builder::Scope scope(builder_, name);
  const auto [w, bias] = linear_weights(x, out, init);
  std::vector<ValueId> inputs = {x, w, bias};
  if (addend.valid()) inputs.push_back(addend);
  return builder_.op("affine", inputs);
}

std::pair<ValueId, ValueId> Layers::linear_weights(ValueId x, int64_t out, Init init) {
  const ValueId w = weight("weight", {out, builder_.shape(x).back()}, init);
  return {w, weight("bias", {out}, {})};
}

ValueId Layers::layer_norm(std::string_view name, ValueId x, double epsilon) {
  const Builder::Scope scope(builder_, name);
  const TensorType channel = {{builder_.shape(x).back()}, DType::f32};
  const ValueId gamma = named("weight", channel, kOnes);
  const ValueId beta = named("bias", channel, {});
  return builder_.op("layer_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
}

ValueId Layers::rng() {
  if (!model_.rng.valid()) model_.rng = builder_.input("rng", {{3}, DType::i64});
  return model_.rng;
}

ValueId Layers::dropout(ValueId x) {
  if (!drops()) return x;
  return builder_.op("dropout", {x, rng()},
                     {{"p", options_.dropout}, {"stream", builder_.next_random_stream()}});
}

ValueId Layers::first_position() {
  if (!first_position_.valid()) {
    first_position_ = builder_.input(kFirstPosition, {{options_.batch}, DType::i32});
  }
  return first_position_;
}

ValueId Layers::positions() {
  if (!positions_.valid()) {
    const int64_t all = options_.batch * options_.length;
    positions_ = builder_.input(kPositions, {{all}, DType::i32});
  }
  return positions_;
}

ValueId Layers::cached_attention(ValueId q, ValueId k, ValueId v, Attrs attrs, int64_t cache) {
  const auto kept = [&](std::string_view name, ValueId rows) {
    TensorType type = builder_.type(rows);
    type.shape = Shape({options_.batch, cache, type.shape[2]});
    return builder_.op("write_rows", {builder_.state(name, type), rows, first_position()});
  };
  const ValueId keys = kept(kCachedKeys, k), values = kept(kCachedValues, v);
  attrs.set("continued", int64_t{1});
  return builder_.op("attention", {q, keys, values, first_position()}, attrs);
}

ValueId Layers::tokens(std::string_view field, int64_t limit) {
  const ValueId value = builder_.input(field, {{options_.batch, options_.length}, DType::i32});
  model_.feeds.push_back({.value = value, .field = std::string(field), .limit = limit});
  return value;
}

ValueId Layers::loss_normalizer() {
  if (!model_.loss_normalizer.valid()) {
    model_.loss_normalizer = builder_.input("normalizer", {{1}, DType::f32});
  }
  return model_.loss_normalizer;
}

std::vector<ValueId> Layers::token_loss(ValueId x, ValueId weight, ValueId targets,
                                        int64_t rows_at_once) {
  targets = builder_.op("reshape", {targets},
                        {{"shape", std::vector<int64_t>{builder_.type(targets).elements()}}});
  return builder_.apply("vocabulary_loss", {x, weight, targets, loss_normalizer()},
                        {{"label_smoothing", options_.training ? options_.label_smoothing : 0.0},
                         {"ignore_index", int64_t{-1}},
                         {"rows_at_once", rows_at_once}});
}

Model Layers::finish_token_losses(ValueId loss, ValueId correct, ValueId nll) {
  model_.loss = loss;
  model_.loss_counts = "targets";
  model_.metrics = {{.name = "perplexity",
                     .brief = "ppl",
                     .sum = nll,
                     .of_mean = [](double mean) { return std::exp(mean); }},
                    {.name = "token_accuracy", .brief = "acc", .sum = correct, .share = true}};
  model_.graph.results = {loss, correct, nll};
  return std::move(model_);
}

Model Layers::finish_tokens(ValueId x, ValueId weight, int64_t rows_at_once) {
  if (!options_.generating) {
    const ValueId targets = tokens("targets", builder_.shape(weight)[0]);
    const std::vector<ValueId> made = token_loss(x, weight, targets, rows_at_once);
    return finish_token_losses(made[0], made[2], made[3]);
  }
  model_.query_positions = builder_.input("asked", {{options_.batch}, DType::i32});
  const ValueId logits =
      builder_.op("matmul", {builder_.op("take_rows", {x, model_.query_positions}), weight},
                  {{"transpose_b", int64_t{1}}});
  model_.outputs = {{"logits", logits}};
  model_.graph.results = {logits};
  return std::move(model_);
}

Layers::PreActivated Layers::pre_activated(ValueId x, int64_t out, int64_t stride) {
  const bool same = builder_.shape(x).back() == out && stride == 1;
  const ValueId first = norm("bn1", x, "relu");
  return {first, same ? x : conv("shortcut", first, out, 1, stride)};
}

Model Layers::classify(ValueId features) {
  return finish(linear("classifier", features, options_.classes));
}

Model Layers::finish(ValueId logits) {
  const ValueId labels = builder_.input("labels", {{options_.batch}, DType::i32});
  loss_normalizer();
  model_.feeds.push_back({.value = labels, .field = "label", .limit = options_.classes});
  const ValueId correct = builder_.op("count_correct", {logits, labels});
  model_.loss =
      builder_.op("softmax_cross_entropy", {logits, labels, model_.loss_normalizer},
                  {{"label_smoothing", options_.training ? options_.label_smoothing : 0.0},
                   {"ignore_index", int64_t{-1}}});
  model_.metrics = {{.name = "accuracy", .brief = "acc", .sum = correct, .share = true}};
  model_.outputs = {{"logits", logits}};
  model_.graph.results = {model_.loss, correct};
  return std::move(model_);
}

}  // namespace thimble
