// lstm: `layers` LSTM layers of `hidden` units over `length` time steps, unrolled, with a
// classifier on the last hidden state. Weight gradients add in place over time. A layer is a node
// per time step, or per run of `steps_at_once` time steps, the last run as short as it takes.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/limits.h"
#include "model/layers.h"
#include "recipe/field.h"

namespace thimble {
namespace {

constexpr int64_t kFeatures = 50;

struct Lstm {
  int64_t layers = 2;
  int64_t hidden = 128;
  int64_t steps_at_once = 0;  // 0: by device
};

bool matches(std::string_view name) { return name == "lstm"; }

void fields(ModelOptions& options, Fields& list) {
  Lstm& lstm = own_of<Lstm>(options);
  constexpr unsigned kAll = matters::graph | matters::bits | matters::time;
  list.whole("layers", lstm.layers, {.least = 1, .most = 10'000},
             {.help = "layers", .matters = kAll});
  list.whole("hidden", lstm.hidden, {.least = 1, .most = kMostWidth},
             {.help = "units of a layer", .matters = kAll});
  list.whole("length", options.length, {.least = 1, .most = 100'000, .open = 0},
             {.help = "time steps", .usual = "64", .matters = kAll});
  // Weights are the same, and the maths, so that a run goes on with another.
  list.whole("steps-at-once", lstm.steps_at_once, {.least = 1, .most = 100'000, .open = 0},
             {.help = "time steps of a layer that are one node of the step",
              .more = "time steps of a layer that are one node of the step; 1 is a node per time "
                      "step. The same maths, rounded otherwise; the weights are the same, so a "
                      "checkpoint goes on with another N",
              .usual = "1; on a GPU 16",
              .matters = matters::graph | matters::time});
}

// On a GPU, one time step is too little work for the launches that it takes.
void complete(ModelOptions& options, bool on_gpu) {
  Lstm& lstm = own_of<Lstm>(options);
  if (options.length == 0) options.length = 64;
  if (lstm.steps_at_once == 0) lstm.steps_at_once = on_gpu ? 16 : 1;
  lstm.steps_at_once = std::min(lstm.steps_at_once, options.length);
  constexpr int64_t kOfANode = 3;  // states and gates, at least
  const int64_t runs = (options.length + lstm.steps_at_once - 1) / lstm.steps_at_once;
  user_check(lstm.layers * runs <= kMostValues / kOfANode,
             "an lstm of {} layers by {} time steps has more than {} tensors; choose fewer "
             "--layers, a shorter --length or more --steps-at-once",
             lstm.layers, options.length, kMostValues);
}

std::vector<RecordField> records(const ModelOptions& options) {
  return {{.name = "sequence",
           .dtype = DType::f32,
           .shape = {options.length, kFeatures},
           .strided = true},
          {.name = "label", .dtype = DType::i32, .limit = options.classes}};
}

void adopt(std::span<const RecordField> data, ModelOptions& options) {
  if (const RecordField* label = find_field(data, "label")) options.classes = label->limit;
}

constexpr Intake kIntake = {records, adopt};

struct Cell {
  ValueId input_weight;      // [4H, I]
  ValueId recurrent_weight;  // [4H, H]
  ValueId bias;              // [4H]
  ValueId h, c;              // [N, H], after the latest time step
};

Cell make_cell(Layers& net, const ModelOptions& options, int64_t hidden, int64_t layer,
               int64_t in) {
  Builder& b = net.build();
  const Builder::Scope scope(b, fmt::format("layer{}", layer + 1));
  const Init init = {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(hidden))};
  const ValueId zero = b.constant(0, {{options.batch, hidden}, options.storage});
  return {net.weight("input.weight", {4 * hidden, in}, init),
          net.weight("recurrent.weight", {4 * hidden, hidden}, init),
          net.weight("bias", {4 * hidden}, init), zero, zero};
}

// Time step t of all layers.
void add_step(Builder& b, const ModelOptions& options, ValueId sequence, int64_t t,
              std::vector<Cell>& cells) {
  ValueId x = b.op("slice", {sequence}, {{"axis", int64_t{0}}, {"begin", t}, {"end", t + 1}});
  x = b.op("reshape", {x}, {{"shape", std::vector<int64_t>{options.batch, kFeatures}}});
  for (Cell& cell : cells) {
    const auto next = b.apply(
        "lstm_cell", {x, cell.h, cell.c, cell.input_weight, cell.recurrent_weight, cell.bias});
    cell.h = next[0];
    cell.c = next[1];
    x = cell.h;
  }
}

// The run of time steps from `begin` on, of all layers.
void add_run(Builder& b, ValueId sequence, int64_t begin, int64_t end, std::vector<Cell>& cells) {
  ValueId x = b.op("slice", {sequence}, {{"axis", int64_t{0}}, {"begin", begin}, {"end", end}});
  for (Cell& cell : cells) {
    const auto next = b.apply(
        "lstm_steps", {x, cell.h, cell.c, cell.input_weight, cell.recurrent_weight, cell.bias});
    x = next[0];
    cell.h = next[1];
    cell.c = next[2];
  }
}

Model build(const ModelOptions& options) {
  const Lstm lstm = own_of<Lstm>(options);
  Layers net(options);
  Builder& b = net.build();
  const ValueId sequence = net.sequence(kFeatures);
  std::vector<Cell> cells;
  for (int64_t layer = 0; layer < lstm.layers; ++layer) {
    cells.push_back(
        make_cell(net, options, lstm.hidden, layer, layer == 0 ? kFeatures : lstm.hidden));
  }
  for (int64_t t = 0; t < options.length; t += lstm.steps_at_once) {
    const Builder::Scope scope(b, fmt::format("t{}", t));
    if (lstm.steps_at_once == 1) {
      add_step(b, options, sequence, t, cells);
    } else {
      add_run(b, sequence, t, std::min(options.length, t + lstm.steps_at_once), cells);
    }
  }
  return net.finish(net.linear("classifier", cells.back().h, options.classes));
}

}  // namespace

extern const ModelFamily family_lstm;
const ModelFamily family_lstm{.pattern = "lstm",
                              .summary = "stacked LSTM over generated sequences",
                              .matches = matches,
                              .batch = 64,
                              .fields = fields,
                              .build = build,
                              .complete = complete,
                              .intake = &kIntake,
                              .data = "sequences"};

}  // namespace thimble
