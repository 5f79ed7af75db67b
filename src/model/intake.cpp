// The inputs of most families of the zoo: labelled images.
#include "model/model.h"

namespace thimble {
namespace {

std::vector<RecordField> image_fields(const ModelOptions& options) {
  return {{.name = "pixels", .dtype = DType::u8, .shape = options.image},
          {.name = "label", .dtype = DType::i32, .limit = options.classes}};
}

void adopt_images(std::span<const RecordField> data, ModelOptions& options) {
  if (const RecordField* pixels = find_field(data, "pixels")) options.image = pixels->shape;
  if (const RecordField* label = find_field(data, "label")) options.classes = label->limit;
}

}  // namespace

const Intake kImageIntake = {image_fields, adopt_images};

}  // namespace thimble
