// Images of the size and classes that the model wants, made on the spot; of a model that reads
// sequences, those.
#include "data/generated.h"

#include "base/error.h"
#include "data/labelled_images.h"

namespace thimble {
namespace {

class Generated final : public LabelledImages {
 public:
  Generated(const ImageSpec& spec, int64_t train_count, int64_t test_count, uint64_t seed)
      : LabelledImages("generated", spec.image, spec.classes), spec_(spec), seed_(seed) {
    user_check(spec.image.rank() == 3 && spec.image.elements() > 0,
               "generated images need a height, a width and channels, not the shape {}",
               to_string(spec.image));
    user_check(
        spec.classes >= 1 && spec.classes <= INT32_MAX && train_count >= 1 && test_count >= 1,
        "a generated data set needs at least one class and one record of each split, not {} "
        "classes, {} and {} records",
        spec.classes, train_count, test_count);
    const auto channels = static_cast<size_t>(spec.image.back());
    set_counts(train_count, test_count);
    set_statistics(std::vector<float>(channels, kGeneratedMean),
                   std::vector<float>(channels, kGeneratedDeviation));
  }

 private:
  void read_image(Split split, int64_t index, std::span<uint8_t> image,
                  int32_t& label) const override {
    generated_image(spec_, seed_, split, index, image, label);
  }

  const ImageSpec spec_;
  const uint64_t seed_;
};

std::unique_ptr<Dataset> open(const DataRequest& request) {
  if (find_field(request.wanted, "sequence") != nullptr) return open_dataset("sequences", request);
  ImageSpec spec;
  if (const RecordField* pixels = find_field(request.wanted, kPixels)) spec.image = pixels->shape;
  if (const RecordField* label = find_field(request.wanted, kLabel)) spec.classes = label->limit;
  return std::make_unique<Generated>(spec, request.train_count.value_or(50'000),
                                     request.test_count.value_or(10'000), 0);
}

}  // namespace

extern const DatasetDef data_generated{
    .name = "generated",
    .summary = "made on the spot, in the size and classes the model wants; needs no files",
    .open = open,
    .gives_way_to = "sequences"};

}  // namespace thimble
