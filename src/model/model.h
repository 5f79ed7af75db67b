// A model is a forward graph with open ends: what it reads of a record, what it computes for
// others. Families of models are one file each in model/zoo; the file name is the registration (see
// cmake/tables.cmake). Only a family and its data sets know the meaning of a pixel, a label or a
// token. All the rest matches names.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/record.h"
#include "base/own_settings.h"
#include "graph/graph.h"
#include "graph/loss_factor.h"
#include "graph/update_rule.h"

namespace thimble {

class Fields;
struct Model;

// The normalization of the channels of a net, where its family leaves the choice.
enum class Norm : uint8_t {
  batch,    // statistics of the rows that are computed together
  group,    // of groups of channels, each row by itself
  carried,  // running statistics, moved by these rows, constants to the gradient
  synced,   // statistics of the rows that all ranks compute at the same time
};
std::string_view name_of(Norm norm);

// The caller's choices of a model. Zero or empty: the family's usual value.
struct ModelOptions {
  std::string name;   // "wrn-28-2", "resnet:[3,4,6,3]", "lstm:layers=4,hidden=1024"
  int64_t batch = 0;  // rows of one microbatch
  // Rows of the whole step, where a microbatch is a part of them (or a rank's are); 0: they are
  // all.
  int64_t step_batch = 0;
  bool is_part() const { return training && step_batch > batch; }
  // Gradients of parts cannot be divided by what they have counted once all of them are there.
  bool counts_beforehand = false;
  Shape image;  // [H, W, C] of the data
  int64_t classes = 0;
  int64_t length = 0;  // of records that have one; of those that families list it for
  double label_smoothing = 0;
  double dropout = 0;  // of Layers, where a net has such layers, as the next three
  Norm norm = Norm::batch;
  double norm_momentum = 0.1;  // of running statistics
  double norm_epsilon = 1e-5;
  DType storage = DType::f32;  // of weights and activations; statistics and losses are always f32
  bool master = false;         // weights are kept in f32 and cast to `storage` where they are used
  int ranks = 1;               // that compute a microbatch each at the same time
  bool training = true;        // false: running statistics, no dropout
  bool generating = false;     // no loss: what follows some positions is asked for
  OwnSettings own = {};        // of the family: see own_of()
  // A net of the caller's own (examples/train_mlp.cpp): builds it, in place of the family that the
  // name would pick. Batch, image and classes have no defaults then.
  std::function<Model(const ModelOptions& options)> build = nullptr;
};

// The purpose of a graph of a model. The same weights, under the same names, whatever the shape.
enum class Purpose : uint8_t { training, evaluation, generation };
struct StepShape {
  int64_t rows = 0;    // computed at once
  int64_t length = 0;  // of models that have one; 0: that of the options
  Purpose purpose = Purpose::training;

  bool operator==(const StepShape&) const = default;
};
ModelOptions options_for(ModelOptions options, const StepShape& shape);

// An entrance: a graph input that a field of records fills, a row for each.
struct Feed {
  ValueId value;
  std::string field;                    // "pixels", "tokens", "label"
  int row_axis = 0;                     // of the value's shape; the others are the record's
  int64_t limit = 0;                    // whole numbers must be below; 0: no matter
  std::optional<int64_t> ignored = {};  // or this one, a label that does not count
  bool must_count = false;              // such a label is refused: the loss takes all to count
  bool one_counts = false;              // a step needs one that counts: the loss is their mean
  ValueId staging = {};  // an input with room for one record that is changed on its way; or none
};

// A figure that is reported beside the loss: sum / count, both added up over microbatches and
// batches.
struct Metric {
  std::string name;                     // "accuracy"; reports add "train_" or "test_"
  std::string brief;                    // on a line of progress: "acc"
  ValueId sum = {};                     // a result of the graph, f32 [1]; invalid: that of the loss
  ValueId count = {};                   // likewise; invalid: what the loss is a mean over
  bool share = false;                   // lies between 0 and 1, shown in percent
  double (*of_mean)(double) = nullptr;  // what becomes of sum / count (perplexity: exp); null: it
};

// A result of the forward pass for others to read.
struct Output {
  std::string name;  // "logits"
  ValueId value;
};

// The family's own settings, a struct of its file. The first makes usual ones where there are none.
template <class Own>
Own& own_of(ModelOptions& options) {
  return options.own.of<Own>();
}
template <class Own>
Own own_of(const ModelOptions& options) {
  return options.own.value<Own>();
}

// A weight as another program has it.
struct ForeignTensor {
  std::string own, theirs;             // names
  std::vector<int64_t> axes = {};      // axis k here is axis axes[k] there; empty: as here
  std::vector<std::string> also = {};  // more names of it there
  bool constant = false;               // is read from there, and never written back
};

// How another program names the model's weights and lays them out, so that its files can be read
// and written.
struct ForeignNames {
  std::string program;                 // "transformers"
  std::string prefix;                  // of names, that a file may have left out of all of them
  std::vector<ForeignTensor> tensors;  // every weight of the model
};

struct Model {
  Graph graph;
  ModelOptions options;  // with every default filled in
  // Entrances.
  std::vector<Feed> feeds;
  ValueId loss_normalizer;         // f32 [1]: one over all that the loss of a step is a mean over:
  std::string loss_counts;         // entries of this field (tokens); empty: rows
  ValueId rng;                     // i64 [3] = seed, step, microbatch; invalid: nothing is random
  std::vector<ValueId> from_data;  // f32 statistics that data sets state, by name (DataConstant)
  // f32 [1]: 1 where rows go on where those of the step before ended, 0 where they begin; invalid:
  // rows are records in any order.
  ValueId carry_state;
  // f32 [rows]: 1 for a record, 0 for a row that stands for none at the end of a test; invalid: a
  // padded row has no label that counts, or the net is not for tests.
  ValueId row_counts;
  ValueId
      query_positions;  // generating: i32 [rows], each row's position in rows x length that is asked for
  // Exits.
  ValueId loss;  // f32 [1], a result; invalid when generating
  // Of a part of a step whose loss has a weight (labels that count): what the loss of all parts,
  // added up, and the gradients are multiplied by.
  std::optional<LossFactor> late_factor;
  std::vector<Metric> metrics;
  std::vector<Output> outputs;
  std::optional<ForeignNames> foreign;  // none: other programs know it by our names alone
  // Of nets that come with numbers of their own.
  std::string first_values;  // a file with them, by the foreign names; empty: as values say
  std::map<std::string, std::vector<double>> first_numbers;  // and of what was computed, by value
  WeightSettings weight_settings;  // of weights that are not updated like the others
  bool whole_batches = false;      // its loss counts every row of a batch: none may be left empty

  int64_t rows() const;
  // InternalError when the model reads no such field.
  const Feed& feed(std::string_view field) const;
};

// Of one layer: more would be beyond any memory.
inline constexpr int64_t kMostWidth = 1 << 24;
// The fields of a record that the model reads.
std::vector<RecordField> fields_read(const Model& model);

// The fields of records that a family reads, before there is a model, and what follows from them.
struct Intake {
  // REQUIRES: the options are complete.
  std::vector<RecordField> (*fields)(const ModelOptions& options) = nullptr;
  // Sets the options that data with these fields decide.
  void (*adopt)(std::span<const RecordField> data, ModelOptions& options) = nullptr;
};
extern const Intake kImageIntake;  // 'pixels' and 'label'

// The model's batch in a step of parts (micro-batches, ranks).
struct PartsOfBatches {
  std::string refused = {};       // why there can be none; empty: there can
  bool late = false;              // its loss has a weight that is known behind the last of them
  bool labels_all_count = false;  // it is the batch's loss only where every label counts
};

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
  // Fills in what its own settings leave open, some by the device; may be null.
  void (*complete)(ModelOptions& options, bool on_gpu) = nullptr;
  // Null: the loss is a sum over rows, times the weight that it is given.
  PartsOfBatches (*parts)(const ModelOptions& options) = nullptr;
  const Intake* intake = &kImageIntake;
  std::string_view data = "digits";  // the data set that it is trained on where none is named

  std::string_view name() const { return pattern.substr(0, pattern.find_first_of("-,")); }
};

std::span<const ModelFamily* const> all_model_families();

// Throws UserError for an unknown name.
const ModelFamily& find_model_family(std::string_view name);

// Settings that several families list.
void list_layers(int64_t& layers, Fields& fields, int64_t most = 10'000,
                 std::string_view help = "layers");
void list_hidden(int64_t& hidden, Fields& fields, std::string_view help = "units of a layer",
                 int64_t least = 1);
void list_dropout(ModelOptions& options, Fields& fields);
void list_norm(ModelOptions& options, Fields& fields);

// Settings of the named model and of no other. The name is without settings.
void list_own_fields(ModelOptions& options, Fields& fields);

// Takes the settings out of a name like "lstm:layers=4,hidden=1024" and sets them.
void split_name(ModelOptions& options);
// That, and every usual value filled in.
void complete_model(ModelOptions& options, bool on_gpu = false);

Model build_model(ModelOptions options);

// REQUIRES: the options are complete.
PartsOfBatches parts_of_batches(const ModelOptions& options);

}  // namespace thimble
