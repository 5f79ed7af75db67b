// CIFAR-10 in its binary version: data_batch_1.bin ... data_batch_5.bin and test_batch.bin.
//
//   record, 3,073 bytes:  │ label │ red 32x32 │ green 32x32 │ blue 32x32 │
#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/io/file.h"
#include "data/labelled_images.h"

namespace thimble {
namespace {

constexpr int64_t kPlane = int64_t{32} * 32;
constexpr int64_t kRecord = 1 + 3 * kPlane;
constexpr int kClasses = 10;

int64_t records_in(const ReadFile& file) { return file.size() / kRecord; }

ReadFile open_batch(const std::string& folder, const std::string& name) {
  ReadFile file(folder + "/" + name);
  user_check(file.size() > 0 && file.size() % kRecord == 0,
             "'{}' is truncated or oversized: its {} bytes are not a whole number of {}-byte "
             "records (the official file has 30730000 bytes); get a fresh copy of it",
             file.path(), file.size(), kRecord);
  return file;
}

class Cifar10 final : public LabelledImages {
 public:
  // `folder` holds the six files, or the folder cifar-10-batches-bin that does. Each file may have
  // any whole number of records.
  explicit Cifar10(const std::string& folder) : LabelledImages("cifar10", {32, 32, 3}, kClasses) {
    const std::string inner = folder + "/cifar-10-batches-bin";
    std::error_code ignored;
    const std::string& where = std::filesystem::is_directory(inner, ignored) ? inner : folder;
    int64_t count = 0;
    for (int batch = 1; batch <= 5; ++batch) {
      train_.push_back(open_batch(where, fmt::format("data_batch_{}.bin", batch)));
      count += records_in(train_.back());
    }
    test_.push_back(open_batch(where, "test_batch.bin"));
    set_counts(count, records_in(test_.back()));
    measure();
  }

 private:
  void read_image(Split split, int64_t index, std::span<uint8_t> image,
                  int32_t& label) const override {
    const ReadFile* file = split == Split::train ? train_.data() : test_.data();
    for (; index >= records_in(*file); ++file) index -= records_in(*file);

    std::array<uint8_t, kRecord> record;
    file->read_at(index * kRecord, std::as_writable_bytes(std::span(record)));
    label = record[0];
    user_check(label < kClasses,
               "'{}' has the label {} in record {} where CIFAR-10 ends at 9; it is damaged or not "
               "the binary version, so get a fresh copy of it",
               file->path(), label, index);
    const uint8_t* red = record.data() + 1;
    for (size_t pixel = 0; pixel < kPlane; ++pixel) {
      for (size_t channel = 0; channel < 3; ++channel) {
        image[3 * pixel + channel] = red[channel * kPlane + pixel];
      }
    }
  }

  std::vector<ReadFile> train_;
  std::vector<ReadFile> test_;
};

}  // namespace

extern const DatasetDef data_cifar10{
    "cifar10", "60,000 photographs, 32x32 colour, 10 classes (--data-dir)",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      return std::make_unique<Cifar10>(request.folder);
    },
    "get the binary version from https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpack "
    "it and name the folder"};

}  // namespace thimble
