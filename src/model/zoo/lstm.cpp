// lstm: `layers` LSTM layers of `hidden` units over `length` time steps, unrolled. They read frames
// of `features` numbers, or tokens, embedded. The net predicts the class of a record from the last
// hidden state, a class at every time step, or a number. Weight gradients add in place over time. A
// layer is a node per time step, or per run of `steps_at_once` time steps. The last run may be
// shorter. A loss at every time step is divided into nodes in the same way.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/field.h"
#include "graph/limits.h"
#include "model/filterbank.h"
#include "model/layers.h"
#include "model/loss_rows.h"

namespace thimble {
namespace {

enum class Reads : uint8_t { sequence, tokens };
std::string_view name_of(Reads reads) { return reads == Reads::sequence ? "sequence" : "tokens"; }

enum class Predicts : uint8_t { label, targets, number };
std::string_view name_of(Predicts predicts) {
  return predicts == Predicts::label     ? "label"
         : predicts == Predicts::targets ? "targets"
                                         : "number";
}

constexpr int64_t kFeatures = 50;

struct Lstm {
  int64_t layers = 2;
  int64_t hidden = 128;
  int64_t steps_at_once = 0;  // 0: by device
  Reads reads = Reads::sequence;
  Predicts predicts = Predicts::label;
  int64_t features = kFeatures;
  int64_t filters = 0;    // of frames; 0: layers read these as they are
  int64_t embedding = 0;  // 0: as many as units
  int64_t memory = 0;     // time steps; 0: as the weights have it
  int64_t loss_rows = 0;  // 0: the op's own
  bool carried = false;   // state, from step to step
  int64_t truncate = 0;   // time steps that gradients go back; 0: all of them
};

bool matches(std::string_view name) { return name == "lstm"; }

// Names of measured times have what is beyond the first three only where it is said.
unsigned affects_if(bool said) {
  return affects::graph | affects::numerics | (said ? unsigned{affects::step_time} : 0u);
}

void list_ends(Lstm& lstm, Fields& list) {
  list.choice("reads", "entrance", 2, lstm.reads,
              {.help = "sequence (of frames) or tokens",
               .more = "`sequence`: frames of numbers; `tokens`: words, bytes, ..., embedded",
               .affects = affects_if(lstm.reads != Reads::sequence)});
  list.choice("predicts", "end", 3, lstm.predicts,
              {.help = "label, targets (one at every time step) or number",
               .more = "`label`: a class, at the end; `targets`: a class at every time step, by a "
                       "projection whose logits never exist whole; `number`: a number, at the end",
               .affects = affects_if(lstm.predicts != Predicts::label)});
  const bool tokens = lstm.reads == Reads::tokens;
  list.whole("features", lstm.features, {.least = 1, .most = kMostWidth},
             {.help = "numbers of a frame",
              .more = "numbers of a frame, where the data do not say",
              .affects = affects_if(lstm.features != kFeatures),
              .unused_reason = tokens ? "with --reads tokens" : ""});
  list.whole(
      "filters", lstm.filters, {.least = 1, .most = kMostWidth, .open = 0},
      {.help = "filters of frames, learnt, whose energies the layers read",
       .more =
           "filters of frames, for raw audio: the layers read the logarithms of what these find "
           "in a frame. They start as those of a spectrum and are learnt with all the rest",
       .usual = "none: frames as they are",
       .affects = affects_if(lstm.filters != 0),
       .unused_reason = tokens ? "with --reads tokens" : ""});
  list.whole("embedding", lstm.embedding, {.least = 1, .most = kMostWidth, .open = 0},
             {.help = "numbers that a token is embedded in",
              .usual = "as many as units",
              .affects = affects_if(lstm.embedding != 0),
              .unused_reason = tokens ? "" : "without --reads tokens"});
  list.whole(
      "memory-steps", lstm.memory, {.least = 2, .most = 1'000'000, .open = 0},
      {.help = "time steps that cells remember from the start",
       .more = "time steps that cells remember from the start: forget gates begin that far open, "
               "input gates that far shut (Tallec & Ollivier 2018), for tasks with long waits",
       .usual = "none",
       .affects = affects_if(lstm.memory != 0)});
  list.on_off(
      "carried-state", lstm.carried,
      {.help = "every row goes on in the text where it ended, from its last state",
       .more = "every row of a batch goes on in the text where it ended in the step before, "
               "from its last state; gradients end where the row begins. Tests begin every "
               "row from zeros",
       .affects = affects_if(lstm.carried),
       .unused_reason = tokens ? "" : "without --reads tokens"});
  list.whole("truncate", lstm.truncate, {.least = 1, .most = 1'000'000, .open = 0},
             {.help = "time steps after which gradients end",
              .more = "time steps after which gradients end: state goes on, its gradient does not "
                      "(truncated back-propagation)",
              .usual = "all of a row",
              .affects = affects_if(lstm.truncate != 0)});
  list_loss_rows(lstm.loss_rows, list, affects_if(lstm.loss_rows != 0),
                 lstm.predicts == Predicts::targets ? "" : "without --predicts targets");
}

void fields(ModelOptions& options, Fields& list) {
  Lstm& lstm = own_of<Lstm>(options);
  list_layers(lstm.layers, list);
  list_hidden(lstm.hidden, list);
  list.whole("length", options.length, {.least = 1, .most = 100'000, .open = 0},
             {.help = "time steps", .usual = "64", .affects = affects::all});
  // Weights are the same, and the maths, so that a run may be resumed with another.
  list.whole("steps-at-once", lstm.steps_at_once, {.least = 1, .most = 100'000, .open = 0},
             {.help = "time steps of a layer that are one node of the step",
              .more = "time steps of a layer that are one node of the step; 1 is a node per time "
                      "step. The same maths, rounded otherwise; the weights are the same, so a "
                      "run can be resumed with another N",
              .usual = "1; on a GPU 16",
              .affects = affects::graph | affects::step_time});
  list_ends(lstm, list);
}

// On a GPU, one time step is too little work for the launches that it takes.
void complete(ModelOptions& options, bool on_gpu) {
  Lstm& lstm = own_of<Lstm>(options);
  if (options.length == 0) options.length = 64;
  if (lstm.steps_at_once == 0) lstm.steps_at_once = on_gpu ? 16 : 1;
  lstm.steps_at_once = std::min(lstm.steps_at_once, options.length);
  if (lstm.embedding == 0) lstm.embedding = lstm.hidden;
  if (on_gpu && lstm.predicts == Predicts::targets && lstm.loss_rows == 0)
    lstm.loss_rows = kLossRowsOnGpu;
  constexpr int64_t kOfANode = 3;  // states and gates, at least
  const int64_t runs = (options.length + lstm.steps_at_once - 1) / lstm.steps_at_once;
  user_check(lstm.layers * runs <= kMostValues / kOfANode,
             "an lstm of {} layers by {} time steps has more than {} tensors; choose fewer "
             "--layers, a shorter --length or more --steps-at-once",
             lstm.layers, options.length, kMostValues);
}

std::vector<RecordField> records(const ModelOptions& options) {
  const Lstm lstm = own_of<Lstm>(options);
  const auto classes = [&](const char* name) {
    return RecordField{
        .name = name, .dtype = DType::i32, .shape = {options.length}, .limit = options.classes};
  };
  std::vector<RecordField> fields = {{.name = "sequence",
                                      .dtype = DType::f32,
                                      .shape = {options.length, lstm.features},
                                      .strided = true}};
  if (lstm.reads == Reads::tokens) fields = {classes("tokens")};
  if (lstm.predicts == Predicts::targets) {
    fields.push_back(classes("targets"));
  } else if (lstm.predicts == Predicts::number) {
    fields.push_back({.name = "number", .dtype = DType::f32});
  } else {
    fields.push_back({.name = "label", .dtype = DType::i32, .limit = options.classes});
  }
  return fields;
}

// Says which ends to choose where the data have others.
void check_ends(std::span<const RecordField> data, const Lstm& lstm) {
  const auto both = [&](Reads reads, Predicts predicts) {
    return find_field(data, name_of(reads)) != nullptr &&
           find_field(data, name_of(predicts)) != nullptr;
  };
  if (both(lstm.reads, lstm.predicts)) return;
  for (const Reads reads : {Reads::sequence, Reads::tokens}) {
    for (const Predicts predicts : {Predicts::label, Predicts::targets, Predicts::number}) {
      user_check(
          !both(reads, predicts),
          "an lstm that reads '{}' and predicts '{}' does not fit these data; choose --reads "
          "{} --predicts {}",
          name_of(lstm.reads), name_of(lstm.predicts), name_of(reads), name_of(predicts));
    }
  }
}

void adopt(std::span<const RecordField> data, ModelOptions& options) {
  Lstm& lstm = own_of<Lstm>(options);
  check_ends(data, lstm);
  for (const char* name : {"label", "targets", "tokens"}) {
    if (const RecordField* field = find_field(data, name)) options.classes = field->limit;
  }
  const RecordField* const sequence = find_field(data, "sequence");
  if (sequence != nullptr && sequence->shape.rank() == 2) lstm.features = sequence->shape[1];
}

constexpr Intake kIntake = {records, adopt};

struct Cell {
  ValueId input_weight;      // [4H, I]
  ValueId recurrent_weight;  // [4H, H]
  ValueId bias;              // [4H]
  ValueId h, c;              // [N, H], after the latest time step
};

class Network {
 public:
  explicit Network(const ModelOptions& options)
      : options_(options), own_(own_of<Lstm>(options)), net_(options), b_(net_.build()) {
    user_check(!options.generating, "an lstm does not go on with a text; choose a run of gpt");
  }

  Model build() {
    enter();
    for (int64_t layer = 0; layer < own_.layers; ++layer) {
      cells_.push_back(make_cell(layer, layer == 0 ? width_ : own_.hidden));
    }
    if (own_.predicts == Predicts::targets) {
      targets_ = net_.tokens("targets", options_.classes);
      head_ = net_.weight("head.weight", {options_.classes, own_.hidden}, init());
    }
    for (int64_t t = 0, end = 0; t < options_.length; t = end) {
      const Builder::Scope scope(b_, fmt::format("t{}", t));
      end = end_of_run(t);
      add_run(t, end);
    }
    if (own_.carried && options_.training) hand_on();
    if (own_.predicts == Predicts::targets) return finish_steps();
    if (own_.predicts == Predicts::number) return finish_number();
    return net_.classify(cells_.back().h);
  }

 private:
  Init init() const {
    return {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(own_.hidden))};
  }

  void enter() {
    if (own_.reads == Reads::sequence) {
      width_ = own_.filters > 0 ? own_.filters : own_.features;
      sequence_ = net_.sequence(own_.features);
      if (own_.filters > 0) sequence_ = energies(net_, sequence_, own_.filters);
      return;
    }
    width_ = own_.embedding;
    tokens_ = net_.tokens("tokens", options_.classes);
    table_ = net_.weight("tokens.weight", {options_.classes, width_}, {Init::Kind::normal, 1});
  }

  Cell make_cell(int64_t layer, int64_t in) {
    const Builder::Scope scope(b_, fmt::format("layer{}", layer + 1));
    Cell cell = {net_.weight("input.weight", {4 * own_.hidden, in}, init()),
                 net_.weight("recurrent.weight", {4 * own_.hidden, own_.hidden}, init()),
                 net_.weight("bias", {4 * own_.hidden}, init()), first_state("h"),
                 first_state("c")};
    if (own_.memory > 0) cell.bias = b_.op("add", {cell.bias, lasting()});
    return cell;
  }

  // The first state of a layer: zeros, or what it ended with in the step before.
  ValueId first_state(std::string_view name) {
    const TensorType state = {{options_.batch, own_.hidden}, options_.storage};
    if (!own_.carried || !options_.training) return b_.constant(0, state);
    ValueId& carry_state = net_.model().carry_state;
    if (!carry_state.valid()) carry_state = b_.input("goes_on", {{1}, DType::f32});
    carried_.push_back(b_.statistic(name, state));
    return b_.op("scale_by", {carried_.back(), carry_state});
  }

  void hand_on() {
    for (size_t layer = 0; layer < cells_.size(); ++layer) {
      const Builder::Scope scope(b_, fmt::format("layer{}", layer + 1));
      b_.op("carry", {carried_[2 * layer], cells_[layer].h});
      b_.op("carry", {carried_[2 * layer + 1], cells_[layer].c});
    }
  }

  // The bias that makes cells last: input gates shut and forget gates open but for one part in
  // `memory`.
  ValueId lasting() {
    const double logit = std::log(static_cast<double>(own_.memory));
    std::vector<ValueId> gates;
    for (const double start : {-logit, logit, 0.0, 0.0}) {
      gates.push_back(b_.constant(start, {{own_.hidden}, options_.storage}));
    }
    return b_.op("concat", gates, {{"axis", int64_t{0}}});
  }

  // Time steps [begin, end) of i32 [N,T]: [N] of one step, else [K,N].
  ValueId steps_of(ValueId rows, int64_t begin, int64_t end) {
    ValueId part = b_.op("slice", {rows}, {{"axis", int64_t{1}}, {"begin", begin}, {"end", end}});
    if (own_.steps_at_once == 1) return reshaped(part, {options_.batch});
    return b_.op("transpose", {part}, {{"perm", std::vector<int64_t>{1, 0}}});
  }
  ValueId reshaped(ValueId value, std::vector<int64_t> shape) {
    return b_.op("reshape", {value}, {{"shape", std::move(shape)}});
  }

  // The input of the first layer at time steps [begin, end): [N,I] of one step, else [K,N,I].
  ValueId entering(int64_t begin, int64_t end) {
    if (own_.reads == Reads::tokens) {
      return b_.op("embed", {table_, steps_of(tokens_, begin, end)});
    }
    const ValueId part =
        b_.op("slice", {sequence_}, {{"axis", int64_t{0}}, {"begin", begin}, {"end", end}});
    return own_.steps_at_once == 1 ? reshaped(part, {options_.batch, width_}) : part;
  }

  // Gradients end between runs.
  int64_t end_of_run(int64_t begin) const {
    int64_t end = std::min(options_.length, begin + own_.steps_at_once);
    if (own_.truncate > 0) end = std::min(end, (begin / own_.truncate + 1) * own_.truncate);
    return end;
  }

  // A time step, or a run of them, of all layers, and its loss.
  void add_run(int64_t begin, int64_t end) {
    if (own_.truncate > 0 && begin > 0 && begin % own_.truncate == 0) {
      for (Cell& cell : cells_) {
        cell.h = b_.op("detach", {cell.h});
        cell.c = b_.op("detach", {cell.c});
      }
    }
    const bool one = own_.steps_at_once == 1;
    ValueId x = entering(begin, end);
    for (Cell& cell : cells_) {
      const auto next =
          b_.apply(one ? "lstm_cell" : "lstm_steps",
                   {x, cell.h, cell.c, cell.input_weight, cell.recurrent_weight, cell.bias});
      x = next[0];
      cell.h = one ? next[0] : next[1];
      cell.c = one ? next[1] : next[2];
    }
    if (own_.predicts != Predicts::targets) return;
    const ValueId rows = one ? x : reshaped(x, {(end - begin) * options_.batch, own_.hidden});
    losses_.push_back(net_.token_loss(rows, head_, steps_of(targets_, begin, end), own_.loss_rows));
  }

  // Added up from the last run to the first, as the backward pass meets them.
  Model finish_steps() {
    std::vector<ValueId> sums = losses_.back();
    for (size_t run = losses_.size() - 1; run-- > 0;) {
      for (const size_t k : {size_t{0}, size_t{2}, size_t{3}}) {
        sums[k] = b_.op("add", {losses_[run][k], sums[k]});
      }
    }
    return net_.finish_token_losses(sums[0], sums[2], sums[3]);
  }

  // The mean of squared errors.
  Model finish_number() {
    Model& model = net_.model();
    const ValueId number = b_.input("number", {{options_.batch}, DType::f32});
    model.feeds.push_back({.value = number, .field = "number"});
    ValueId y = reshaped(net_.linear("regressor", cells_.back().h, 1), {options_.batch});
    if (options_.storage != DType::f32) y = b_.op("cast", {y}, {{"dtype", std::string("f32")}});
    ValueId error = b_.op("sub", {y, number});
    if (!options_.training) {
      model.row_counts = b_.input("row_counts", {{options_.batch}, DType::f32});
      error = b_.op("mul", {error, model.row_counts});
    }
    const ValueId sum = b_.op("reduce", {b_.op("mul", {error, error})},
                              {{"axes", std::vector<int64_t>{0}}, {"keep_dims", int64_t{1}}});
    model.loss = b_.op("mul", {sum, net_.loss_normalizer()});
    model.metrics = {{.name = "deviation", .brief = "rms", .of_mean = [](double mean) {
                        return std::sqrt(mean);
                      }}};
    model.outputs = {{"number", y}};
    model.graph.results = {model.loss};
    return std::move(model);
  }

  const ModelOptions& options_;
  const Lstm own_;
  Layers net_;
  Builder& b_;
  int64_t width_ = 0;                         // of what the first layer reads
  ValueId sequence_, tokens_, table_;         // entrances
  ValueId targets_, head_;                    // of a loss at every time step
  std::vector<Cell> cells_;                   // by layer
  std::vector<ValueId> carried_;              // h and c of every layer, from step to step
  std::vector<std::vector<ValueId>> losses_;  // by run: what vocabulary_loss makes
};

Model build(const ModelOptions& options) { return Network(options).build(); }

}  // namespace

extern const ModelFamily family_lstm{.pattern = "lstm",
                                     .summary = "stacked LSTM over sequences or tokens",
                                     .matches = matches,
                                     .batch = 64,
                                     .fields = fields,
                                     .build = build,
                                     .complete = complete,
                                     .intake = &kIntake,
                                     .data = "sequences"};

}  // namespace thimble
