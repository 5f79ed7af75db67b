// The family of nets that are files: NAME.json, as thimble.torch.export writes it (docs/import.md). The
// name of such a model is the path of the file.
#include <memory>

#include "base/error.h"
#include "import/lowering.h"
#include "import/net.h"
#include "model/model.h"
#include "recipe/field.h"

namespace thimble {
namespace {

// Read once for all graphs that are built of it.
struct Imported {
  std::shared_ptr<const Net> net;
};

bool matches(std::string_view name) { return name.ends_with(".json"); }

void fields(ModelOptions&, Fields&) {}

const Net& net_of(ModelOptions& options) {
  Imported& own = own_of<Imported>(options);
  if (!own.net) own.net = std::make_shared<const Net>(read_net(options.name));
  return *own.net;
}

void complete(ModelOptions& options, bool) {
  const Net& net = net_of(options);
  if (options.batch == 0) options.batch = net.batch;
}

std::vector<RecordField> records(const ModelOptions& options) {
  ModelOptions read = options;
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
  return Lowering(net_of(read), options).build();
}

}  // namespace

extern const ModelFamily family_imported;
const ModelFamily family_imported{
    .pattern = "NET.json",
    .summary = "a network from outside: the path of a file that thimble.torch.export wrote",
    .matches = matches,
    .fields = fields,
    .build = build,
    .complete = complete,
    .intake = &kIntake,
    .data = "noise"};

}  // namespace thimble
