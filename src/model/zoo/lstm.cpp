// lstm: `layers` LSTM layers of `hidden` units over `length` time steps, unrolled, with a
// classifier on the last hidden state. Weight gradients add in place over time. A layer is a node
// per time step, or per run of `steps_at_once` time steps, the last run as short as it takes.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/layers.h"

namespace thimble {
namespace {

constexpr int64_t kFeatures = 50;

bool matches(std::string_view name) { return name == "lstm"; }

void complete(ModelOptions& options) {
  if (options.batch == 0) options.batch = 64;
  if (options.classes == 0) options.classes = 10;
  if (options.layers == 0) options.layers = 2;
  if (options.hidden == 0) options.hidden = 128;
  if (options.length == 0) options.length = 64;
  if (options.steps_at_once == 0) options.steps_at_once = 1;
  user_check(options.steps_at_once >= 1, "an lstm cannot do {} time steps at once",
             options.steps_at_once);
  options.steps_at_once = std::min(options.steps_at_once, options.length);
}

std::vector<RecordField> fields(const ModelOptions& options) {
  return {{.name = "sequence",
           .dtype = DType::f32,
           .shape = {options.length, kFeatures},
           .strided = true},
          {.name = "label", .dtype = DType::i32, .limit = options.classes}};
}

void adopt(std::span<const RecordField> data, ModelOptions& options) {
  if (const RecordField* label = find_field(data, "label")) options.classes = label->limit;
}

constexpr Intake kIntake = {fields, adopt};

struct Cell {
  ValueId input_weight;      // [4H, I]
  ValueId recurrent_weight;  // [4H, H]
  ValueId bias;              // [4H]
  ValueId h, c;              // [N, H], after the latest time step
};

Cell make_cell(Layers& net, const ModelOptions& options, int64_t layer, int64_t in) {
  Builder& b = net.build();
  const Builder::Scope scope(b, fmt::format("layer{}", layer + 1));
  const int64_t hidden = options.hidden;
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
void add_run(Builder& b, const ModelOptions& options, ValueId sequence, int64_t begin,
             std::vector<Cell>& cells) {
  const int64_t end = std::min(options.length, begin + options.steps_at_once);
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
  Layers net(options);
  Builder& b = net.build();
  const ValueId sequence = net.sequence(kFeatures);
  std::vector<Cell> cells;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    cells.push_back(make_cell(net, options, layer, layer == 0 ? kFeatures : options.hidden));
  }
  for (int64_t t = 0; t < options.length; t += options.steps_at_once) {
    const Builder::Scope scope(b, fmt::format("t{}", t));
    if (options.steps_at_once == 1) {
      add_step(b, options, sequence, t, cells);
    } else {
      add_run(b, options, sequence, t, cells);
    }
  }
  return net.finish(net.linear("classifier", cells.back().h, options.classes));
}

}  // namespace

extern const ModelFamily family_lstm;
const ModelFamily family_lstm{
    .pattern = "lstm",
    .summary = "stacked LSTM over generated sequences (--layers, --hidden, --length)",
    .matches = matches,
    .complete = complete,
    .build = build,
    .intake = &kIntake,
    .data = "sequences"};

}  // namespace thimble
