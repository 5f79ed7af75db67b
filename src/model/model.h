// A model is a forward graph with agreed entrances and exits. Families of models are one file each
// in model/zoo; the file name is the registration (see cmake/tables.cmake).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace thimble {

struct Model;

// What normalises the channels of a net, where its family leaves the choice.
enum class Norm : uint8_t {
  batch,    // statistics of the rows that are computed together
  group,    // of groups of channels, each row by itself
  carried,  // running statistics, moved by these rows, constants to the gradient
};
std::string_view name_of(Norm norm);
// UserError for another name.
Norm parse_norm(std::string_view name);

// "fp32", "fp16", "bf16": what weights and activations are stored in. UserError for another name.
DType parse_precision(std::string_view name);

// What the caller may choose about a model; zero or empty: the family's own default.
struct ModelOptions {
  std::string name;   // "wrn-28-2", "resnet:[3,4,6,3]", "mlp", "lstm", "unet"
  int64_t batch = 0;  // rows of one microbatch
  Shape image;        // [H, W, C] of the data; rank 0: the family's default
  int64_t classes = 0;
  double label_smoothing = 0;
  double dropout = 0;
  Norm norm = Norm::batch;     // wrn, resnet
  int64_t layers = 0;          // mlp, lstm; unet: how often the image is halved
  int64_t hidden = 0;          // mlp, lstm; unet, resnet: channels of the first stage
  int64_t length = 0;          // lstm: time steps
  int64_t steps_at_once = 0;   // lstm: time steps of a layer that are one node; the same weights
  DType storage = DType::f32;  // of weights and activations; statistics and losses are always f32
  bool master = false;         // weights are kept in f32 and cast to `storage` where they are used
  bool training = true;        // false: running statistics, no dropout
  // A net of the caller's own (examples/train_mlp.cpp): builds it, in place of the family that the
  // name would pick. Batch, image and classes have no defaults then.
  Model (*build)(const ModelOptions& options) = nullptr;
};

struct Model {
  Graph graph;
  ModelOptions options;  // with every default filled in
  // Entrances. Image models read `pixels` u8 [N,H,W,C]; sequence models `sequence` f32 [T,N,I].
  ValueId pixels;
  ValueId staging;  // u8 [H,W,C]: room for one record while a batch is gathered
  ValueId sequence;
  ValueId labels;      // i32 [N]; -1 marks a row that does not count
  ValueId normalizer;  // f32 [1]: 1 / rows that count
  ValueId rng;         // i64 [3] = seed, step, microbatch; invalid when nothing is random
  // Normalisation of the data, kept with the weights: f32 [C] each.
  ValueId pixel_mean;
  ValueId pixel_inverse_deviation;
  // Exits.
  ValueId logits;   // [N, classes]
  ValueId loss;     // f32 [1]
  ValueId correct;  // f32 [1]: rows whose arg-max is the label
};

struct ModelFamily {
  std::string_view pattern;  // for people: "wrn-D-K"
  std::string_view summary;
  // Whether the name belongs to the family; a name that nearly does throws UserError saying why.
  bool (*matches)(std::string_view name) = nullptr;
  // Fills the defaults in.
  void (*complete)(ModelOptions& options) = nullptr;
  Model (*build)(const ModelOptions& options) = nullptr;
  bool sequences = false;  // reads `sequence`, not `pixels`
};

std::span<const ModelFamily* const> all_model_families();

// Throws UserError for an unknown name.
const ModelFamily& find_model_family(std::string_view name);
Model build_model(ModelOptions options);

}  // namespace thimble
