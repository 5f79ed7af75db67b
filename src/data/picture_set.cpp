#include "data/picture_set.h"

#include <algorithm>

#include "base/error.h"
#include "data/format/picture.h"

namespace thimble {
namespace {

Shape size_of_pictures(const DataRequest& request) {
  const RecordField* const wanted = find_field(request.wanted, kPixels);
  const bool sized = wanted != nullptr && wanted->shape.rank() == 3 && wanted->shape[0] > 0;
  const Shape size = sized ? wanted->shape : Shape{224, 224, 3};
  user_check(size[2] == 1 || size[2] == 3,
             "pictures have 1 or 3 channels, and the model reads {}; choose another --image",
             size[2]);
  return size;
}

}  // namespace

PictureSet::PictureSet(std::string name, const DataRequest& request, int64_t classes)
    : LabelledImages(std::move(name), size_of_pictures(request), classes) {
  set_decoded();
}

void PictureSet::read_image(Split split, int64_t index, std::span<uint8_t> image,
                            int32_t& label) const {
  thread_local std::vector<std::byte> room;
  thread_local Picture picture;
  const std::span<const std::byte> file = file_of(split, index, room);
  const Shape& size = this->image();
  decode_picture(file, name_of_picture(split, index), size[2], std::max(size[0], size[1]), picture);
  resize_and_crop(picture, size, image);
  label = label_of(split, index);
}

void PictureSet::measure_some() {
  constexpr int64_t kLooked = 256;
  const int64_t count = info().train_count;
  const int64_t looked = std::min(kLooked, count);
  measure_training(looked, [&](int64_t i) { return i * count / looked; });
}

}  // namespace thimble
