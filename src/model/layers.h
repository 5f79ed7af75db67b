// Layer builders: a few nodes and the weights they need, named by scope ("block3.conv1.weight").
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "graph/builder.h"
#include "model/model.h"

namespace thimble {

class Layers {
 public:
  explicit Layers(const ModelOptions& options);

  // Entrances; call one of them first.
  ValueId images();                    // 'pixels', [N,H,W,C], normalised
  ValueId sequence(int64_t features);  // 'sequence', [T,N,I]

  // `pad` < 0: keeps the size at stride 1. Weights N(0, sqrt(2 / (k*k*out))).
  ValueId conv(std::string_view name, ValueId x, int64_t out, int64_t kernel, int64_t stride = 1,
               int64_t pad = -1);
  // Normalises the channels (the last axis) as the options say; act: "none" or "relu", fused.
  ValueId norm(std::string_view name, ValueId x, std::string_view act);
  // The beginning of a residual block whose activations come before its convolutions: x behind norm
  // and relu, and the way around the block, a convolution where it changes the shape.
  struct PreActivated {
    ValueId first, skip;
  };
  PreActivated pre_activated(ValueId x, int64_t out, int64_t stride);
  // x [N, I] -> [N, out]; act as of bias_act, fused.
  ValueId linear(std::string_view name, ValueId x, int64_t out, std::string_view act = "none");
  // x [..., I] -> [..., out], whose weight starts as `init` says and whose bias at zero.
  ValueId linear(std::string_view name, ValueId x, int64_t out, std::string_view act, Init init);
  // The same without an activation as one node, which rounds once, with `addend` in its sum where
  // there is one: for devices whose products add both on their way.
  ValueId affine(std::string_view name, ValueId x, int64_t out, Init init, ValueId addend = {});
  // Each row of the last axis by itself, whatever the options say.
  ValueId layer_norm(std::string_view name, ValueId x, double epsilon = 1e-5);
  ValueId dropout(ValueId x);
  // Causal attention as `attrs` say over a KV cache of so many positions: k and v are written into
  // it, and queries see all that it holds up to their own places (model/kv_cache.h).
  ValueId cached_attention(ValueId q, ValueId k, ValueId v, Attrs attrs, int64_t cache);
  // The inputs that say where rows continue the cache; the first call, outside of any scope, makes
  // each.
  ValueId first_position();
  ValueId positions();
  bool drops() const { return options_.training && options_.dropout > 0; }
  // The input that random bits are made of; the first call makes it.
  ValueId rng();
  // A weight as the layers read it, in the storage type: kept in it, or an f32 one behind a cast.
  // The same name in the same scope is the same weight, whatever asks for it: rows may go through a
  // layer in parts.
  ValueId weight(std::string_view name, const Shape& shape, Init init);
  // Closes a classifier: logits [N, classes] and 'label' -> loss, accuracy.
  Model finish(ValueId logits);
  // The same from features [N, I], which a linear layer turns into logits.
  Model classify(ValueId features);

  // Tokens of a record, 'tokens' or whatever `field` says: i32 [N,T], below `limit`.
  ValueId tokens(std::string_view field, int64_t limit);
  // Closes a model that predicts 'targets', the field of that name: rows x [N*T, C] and a weight
  // [classes, C] that projects them -> loss, perplexity, accuracy of tokens. When generating,
  // logits of the rows that are asked for. Logits exist for `rows_at_once` rows at a time (0: the
  // usual).
  Model finish_tokens(ValueId x, ValueId weight, int64_t rows_at_once = 0);
  // That in parts, for losses that are made bit by bit: what vocabulary_loss makes of some rows and
  // their targets, i32 of as many elements; and the end, of all their sums.
  std::vector<ValueId> token_loss(ValueId x, ValueId weight, ValueId targets,
                                  int64_t rows_at_once = 0);
  Model finish_token_losses(ValueId loss, ValueId correct, ValueId nll);
  // The input that holds one over what the loss of a step is a mean over.
  ValueId loss_normalizer();

  // For ends of the caller's own.
  Model& model() { return model_; }
  Builder& build() { return builder_; }
  bool training() const { return options_.training; }

 private:
  // The weight of that name in the scope at hand, made where there is none.
  ValueId named(std::string_view name, TensorType type, Init init);
  // Of a linear layer: its weight, [out, in] as PyTorch keeps it, and its bias.
  std::pair<ValueId, ValueId> linear_weights(ValueId x, int64_t out, Init init);
  // The value in the storage type, through a cast where it is of another.
  ValueId stored(ValueId value);
  ValueId batch_norm(ValueId x, ValueId gamma, ValueId beta, std::string_view act);
  std::vector<ValueId> over_ranks(const std::vector<ValueId>& here);
  ValueId of_all_ranks(ValueId channels);
  ValueId group_norm(ValueId x, ValueId gamma, ValueId beta, std::string_view act);

  const ModelOptions options_;
  Model model_;
  Builder builder_;
  std::map<std::string, ValueId> weights_;  // by their scoped names
  ValueId first_position_, positions_;
};

}  // namespace thimble
