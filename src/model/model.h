// A model is a forward graph with agreed entrances and exits. Families of models are one file each
// in model/zoo; the file name is the registration (see cmake/tables.cmake).
#pragma once

#include <any>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace thimble {

class Fields;
struct Model;

// What normalises the channels of a net, where its family leaves the choice.
enum class Norm : uint8_t {
  batch,    // statistics of the rows that are computed together
  group,    // of groups of channels, each row by itself
  carried,  // running statistics, moved by these rows, constants to the gradient
};
std::string_view name_of(Norm norm);

// What the caller may choose about a model; zero or empty: the family's usual.
struct ModelOptions {
  std::string name;   // "wrn-28-2", "resnet:[3,4,6,3]", "lstm:layers=4,hidden=1024"
  int64_t batch = 0;  // rows of one microbatch
  Shape image;        // [H, W, C] of the data
  int64_t classes = 0;
  double label_smoothing = 0;
  double dropout = 0;  // of Layers, where a net has such layers, as the next three
  Norm norm = Norm::batch;
  double norm_momentum = 0.1;  // of running statistics
  double norm_epsilon = 1e-5;
  DType storage = DType::f32;  // of weights and activations; statistics and losses are always f32
  bool master = false;         // weights are kept in f32 and cast to `storage` where they are used
  bool training = true;        // false: running statistics, no dropout
  std::any own = {};           // what only the family knows of: see own_of()
  // A net of the caller's own (examples/train_mlp.cpp): builds it, in place of the family that the
  // name would pick. Batch, image and classes have no defaults then.
  std::function<Model(const ModelOptions& options)> build = nullptr;
};

// The family's own settings, a struct of its file. The first makes usual ones where there are none.
template <class Own>
Own& own_of(ModelOptions& options) {
  if (std::any_cast<Own>(&options.own) == nullptr) options.own = Own();
  return *std::any_cast<Own>(&options.own);
}
template <class Own>
Own own_of(const ModelOptions& options) {
  const Own* own = std::any_cast<Own>(&options.own);
  return own == nullptr ? Own() : *own;
}

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

// Of one layer: more would be beyond any memory.
inline constexpr int64_t kMostUnits = 1 << 24;

struct ModelFamily {
  std::string_view pattern;  // for people: "wrn-D-K"
  std::string_view summary;
  // Whether the name belongs to the family; a name that nearly does throws UserError saying why.
  bool (*matches)(std::string_view name) = nullptr;
  int64_t batch = 0;  // usual ones
  Shape image = {};
  int64_t classes = 10;
  // Lists what can be chosen about its models besides: members of `options` and of own_of().
  void (*fields)(ModelOptions& options, Fields& fields) = nullptr;
  std::function<Model(const ModelOptions& options)> build;
  bool sequences = false;  // reads `sequence`, not `pixels`
  // Fills in what its own settings leave to the device; may be null.
  void (*complete)(ModelOptions& options, bool on_gpu) = nullptr;

  std::string_view name() const { return pattern.substr(0, pattern.find_first_of("-,")); }
};

std::span<const ModelFamily* const> all_model_families();

// Throws UserError for an unknown name.
const ModelFamily& find_model_family(std::string_view name);

// Settings that several families list.
void list_dropout(ModelOptions& options, Fields& fields);
void list_norm(ModelOptions& options, Fields& fields);

// What can be chosen about the named model and about no other. The name is without settings.
void list_own_fields(ModelOptions& options, Fields& fields);

// Takes the settings out of a name like "lstm:layers=4,hidden=1024" and sets them.
void split_name(ModelOptions& options);
// That, and every usual value filled in.
void complete_model(ModelOptions& options, bool on_gpu = false);

Model build_model(ModelOptions options);

}  // namespace thimble
