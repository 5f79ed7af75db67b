// The family of nets that are files: NAME.json, as thimble.torch.export writes it, or NAME.onnx
// (docs/import.md). The name of such a model is the path of the file.
#include <memory>

#include "base/error.h"
#include "import/lowering.h"
#include "import/net.h"
#include "import/onnx/lower_onnx.h"
#include "model/model.h"
#include "recipe/field.h"

namespace thimble {
namespace {

// Read once for all graphs that are built of it.
struct Imported {
  std::shared_ptr<const Net> net;
  std::shared_ptr<const OnnxModel> onnx;
  bool joined = false;  // on a device whose products add biases
};

bool is_onnx(std::string_view name) { return name.ends_with(".onnx"); }
bool matches(std::string_view name) { return name.ends_with(".json") || is_onnx(name); }

const OnnxModel& onnx_of(ModelOptions& options) {
  Imported& own = own_of<Imported>(options);
  if (!own.onnx) own.onnx = std::make_shared<const OnnxModel>(read_onnx(options.name));
  return *own.onnx;
}

// Rows that an ONNX file was exported with, where it says so.
int64_t usual_rows(const OnnxModel& onnx) {
  for (const OnnxEnd& input : onnx.inputs) {
    const bool fed = !onnx.tensors.contains(input.name) && !input.dims.empty();
    if (fed && input.dims[0] > 0) return input.dims[0];
  }
  return 32;
}

void fields(ModelOptions&, Fields&) {}

const Net& net_of(ModelOptions& options) {
  Imported& own = own_of<Imported>(options);
  if (!own.net) own.net = std::make_shared<const Net>(read_net(options.name));
  return *own.net;
}

void complete(ModelOptions& options, bool on_gpu) {
  if (on_gpu) own_of<Imported>(options).joined = true;
  if (is_onnx(options.name)) {
    const OnnxModel& onnx = onnx_of(options);
    if (options.batch == 0) options.batch = usual_rows(onnx);
    return;
  }
  const Net& net = net_of(options);
  if (options.batch == 0) options.batch = net.batch;
}

std::vector<RecordField> records(const ModelOptions& options) {
  ModelOptions read = options;
  if (is_onnx(options.name)) return fields_read(build_onnx(onnx_of(read), read));
  const Net& net = net_of(read);
  std::vector<RecordField> fields;
  for (const NetInput& input : net.inputs) {
    const Shape one = shape_for(input.shape, 1);
    fields.push_back({.name = input.name,
                      .dtype = input.dtype,
                      .shape = Shape(one.dims().subspan(1)),
                      .limit = input.dtype == DType::i32 ? limit_of(net, input.name) : 0});
  }
  return fields;
}

void adopt(std::span<const RecordField>, ModelOptions&) {}

constexpr Intake kIntake = {records, adopt};

Model build(const ModelOptions& options) {
  user_check(!options.generating, "'{}' is a network from outside, which only trains here",
             options.name);
  user_check(options.label_smoothing == 0 && options.norm == Norm::batch,
             "'{}' says by itself how it normalises and smooths its labels; leave --norm and "
             "--label-smoothing out",
             options.name);
  ModelOptions read = options;
  if (is_onnx(options.name)) return build_onnx(onnx_of(read), options);
  Lowering lowering(net_of(read), options);
  if (own_of<Imported>(read).joined) lowering.join_products();
  return lowering.build();
}

}  // namespace

extern const ModelFamily family_imported{
    .pattern = "NET.json, NET.onnx",
    .summary = "a network from outside: the path of a file of thimble.torch.export, or ONNX",
    .matches = matches,
    .fields = fields,
    .build = build,
    .complete = complete,
    .intake = &kIntake,
    .data = "noise"};

}  // namespace thimble
