// The family of nets that are files: NAME.json, as thimble.torch.export writes it, or NAME.onnx
// (docs/import.md). The name of such a model is the path of the file.
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/field.h"
#include "import/fused.h"
#include "import/loss_parts.h"
#include "import/lowering.h"
#include "import/net.h"
#include "import/onnx/ends.h"
#include "import/onnx/lower_onnx.h"
#include "model/model.h"

namespace thimble {
namespace {

// The file, read when it is asked for, once for all graphs that are built of it.
struct NetFile {
  std::string path;
  std::optional<Net> net = {};
  std::optional<OnnxModel> onnx = {};
};

struct Imported {
  std::shared_ptr<NetFile> file;  // shared by all copies of the options
  OnnxChoices choices;
  std::shared_ptr<std::optional<LossParts>> parts;  // found when they are asked for
  bool joined = false;                              // on a device whose products add biases
  bool fuse = true;                                 // nodes that spell an op of ours become it
};

bool is_onnx(std::string_view name) { return name.ends_with(".onnx"); }
bool matches(std::string_view name) { return name.ends_with(".json") || is_onnx(name); }

NetFile& file_of(ModelOptions& options) {
  std::shared_ptr<NetFile>& file = own_of<Imported>(options).file;
  if (!file || file->path != options.name) file = std::make_shared<NetFile>(options.name);
  return *file;
}

const OnnxModel& onnx_of(ModelOptions& options) {
  NetFile& file = file_of(options);
  if (!file.onnx) file.onnx = read_onnx(file.path);
  return *file.onnx;
}

// Of ONNX files, which leave open what others say.
void fields(ModelOptions& options, Fields& list) {
  file_of(options);  // here, since whoever lists the options is where copies come from
  OnnxChoices& choices = own_of<Imported>(options).choices;
  const std::string idle =
      is_onnx(options.name) ? "" : "with a .json network, which says it itself";
  list.texts(
      "shape", choices.shapes,
      {.help = "Axes of an input, x=rows,3,48,320; may be repeated",
       .more = "axes of an input of an ONNX file that leaves them open: `x=4,3,48,320`, whose "
               "first number is the usual `--batch`, or `x=rows,3,48,320`; may be repeated",
       .usual = "the file's",
       .placeholder = "INPUT=AXES",
       .affects = affects::all,
       .unused_reason = idle});
  list.texts(
      "fixed", choices.fixed,
      {.help = "An input that is one number everywhere, sr=16000",
       .more = "inputs of an ONNX file that are one number everywhere: `sr=16000`, `state=0`; "
               "may be repeated",
       .usual = "none",
       .placeholder = "INPUT=NUMBER",
       .affects = affects::all,
       .unused_reason = idle});
  list.text("loss-of", choices.output,
            {.help = "The output that the loss is of",
             .usual = "the first of real numbers",
             .placeholder = "NAME",
             .affects = affects::all,
             .unused_reason = idle});
  list.choice(
      "loss", "loss", kOnnxLosses, [&choices] { return choices.loss; },
      [&choices](const std::string& chosen) { choices.loss = chosen; },
      {.help = "What an ONNX file is trained for",
       .more = "what an ONNX file is trained for: `cross_entropy`, `bce`, `mse`, `l1`, `dice`, or "
               "its `own` output; see [losses](import.md#losses)",
       .usual = "auto: by how the graph ends",
       .affects = affects::all,
       .unused_reason = idle});
  list.choice(
      "norms", "way", kOnnxNorms, [&choices] { return choices.norms; },
      [&choices](const std::string& chosen) { choices.norms = chosen; },
      {.help = "Batch norms of an ONNX file: train, or frozen",
       .more =
           "batch norms of an ONNX file: `train`: statistics of the batch, and files whose norms "
           "are folded into convolutions are refused; `frozen`: those of the file",
       .usual = "auto: trained where they are there, folded ones as they are",
       .affects = affects::all,
       .unused_reason = idle});
  list.on_off("fuse", own_of<Imported>(options).fuse,
              {.help = "nodes that spell an op of ours become it",
               .more = "`off` leaves every node as the file has it, for recipes whose marks name "
                       "such nodes; see [fusing](import.md#fusing)",
               .affects = affects::all});
}

const Net& net_of(ModelOptions& options) {
  NetFile& file = file_of(options);
  if (!file.net) file.net = read_net(file.path);
  return *file.net;
}

LossParts find_parts(ModelOptions options) {
  try {
    if (is_onnx(options.name))
      return loss_parts_of_onnx(onnx_of(options), options, own_of<Imported>(options).choices);
    const auto [some, others] = two_sizes_of(options);
    Lowering one(net_of(options), some), other(net_of(options), others);
    one.lower_all();
    other.lower_all();
    return find_loss_parts(one, other, net_of(options).loss);
  } catch (const UserError&) {  // what is wrong for any number of rows is said elsewhere
    return {.refused = fmt::format("it cannot be built for another number of rows than {}",
                                   options.batch)};
  }
}

const LossParts& parts_of(ModelOptions& options) {
  auto& parts = own_of<Imported>(options).parts;
  if (!parts) parts = std::make_shared<std::optional<LossParts>>();
  if (!*parts) *parts = find_parts(options);
  return **parts;
}

void complete(ModelOptions& options, bool on_gpu) {
  Imported& own = own_of<Imported>(options);
  if (on_gpu) own.joined = true;
  if (!own.parts) own.parts = std::make_shared<std::optional<LossParts>>();
  if (is_onnx(options.name)) {
    constexpr int64_t kUsual = 32;
    const OnnxModel& onnx = onnx_of(options);
    if (options.batch == 0) options.batch = usual_rows(onnx, own_of<Imported>(options).choices);
    if (options.batch == 0) options.batch = kUsual;
    return;
  }
  const Net& net = net_of(options);
  if (options.batch == 0) options.batch = net.batch;
}

std::vector<RecordField> records(const ModelOptions& options) {
  ModelOptions read = options;
  if (is_onnx(options.name))
    return fields_read(build_onnx(onnx_of(read), read, own_of<Imported>(read).choices));
  const Net& net = net_of(read);
  std::vector<RecordField> fields;
  for (const NetInput& input : net.inputs) {
    const Shape one = shape_for(input.shape, 1);
    const bool whole = input.dtype == DType::i32;
    const WholeNumbers numbers = whole ? numbers_of(net, input.name) : WholeNumbers{};
    fields.push_back({.name = input.name,
                      .dtype = input.dtype,
                      .shape = Shape(one.dims().subspan(1)),
                      .limit = numbers.limit,
                      .ignored = numbers.ignored});
  }
  return fields;
}

void adopt(std::span<const RecordField>, ModelOptions&) {}

constexpr Intake kIntake = {records, adopt};

Model build_written(const ModelOptions& options, ModelOptions& read) {
  const LossParts* const parts = options.is_part() ? &parts_of(read) : nullptr;
  const Imported& own = own_of<Imported>(read);
  if (is_onnx(options.name)) return build_onnx(onnx_of(read), options, own.choices, parts);
  Lowering lowering(net_of(read), options);
  if (own.joined) lowering.join_products();
  return lowering.build(parts);
}

Model build(const ModelOptions& options) {
  user_check(!options.generating, "'{}' is a network from outside, which only trains here",
             options.name);
  user_check(options.label_smoothing == 0 && options.norm == Norm::batch,
             "'{}' says by itself how it normalises and smooths its labels; leave --norm and "
             "--label-smoothing out",
             options.name);
  ModelOptions read = options;
  Model model = build_written(options, read);
  const Imported& own = own_of<Imported>(read);
  if (own.fuse) fuse_model(model, own.joined);
  return model;
}

PartsOfBatches parts_of_imported(const ModelOptions& options) {
  ModelOptions read = options;
  const LossParts& parts = parts_of(read);
  return {.refused = parts.refused,
          .late = parts.weight.has_value(),
          .labels_all_count = parts.labels_all_count};
}

}  // namespace

extern const ModelFamily family_imported{
    .pattern = "NET.json, NET.onnx",
    .summary = "a network from outside: the path of a file of thimble.torch.export, or ONNX",
    .matches = matches,
    .fields = fields,
    .build = build,
    .complete = complete,
    .parts = parts_of_imported,
    .intake = &kIntake,
    .data = "noise"};

}  // namespace thimble
