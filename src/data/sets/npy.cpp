// Arrays of NumPy's, a file for every field that the model reads, a row for every record:
//
//   FOLDER/train_pixels.npy, train_label.npy    FOLDER/test_pixels.npy, test_label.npy
//   or FOLDER/train/pixels.npy, ...             or FOLDER/test/pixels.npy, ...
//
// Without test files, the last tenth of the rows is for testing. Rows are read where they lie.
#include "data/format/npy.h"

#include <algorithm>

#include "base/error.h"
#include "base/io/sha256.h"
#include "data/label_field.h"
#include "data/labelled_images.h"

namespace thimble {
namespace {

class Arrays final : public Dataset {
 public:
  explicit Arrays(const DataRequest& request) : folder_(request.folder) {
    info_.name = "npy";
    user_check(!request.wanted.empty(), "the data set 'npy' is of what a model reads; name one");
    const bool tests = exists(path_of("test", request.wanted.front()));
    for (const RecordField& wanted : request.wanted) {
      train_.emplace_back(path_of("train", wanted));
      if (tests) test_.emplace_back(path_of("test", wanted));
      add_field(wanted);
    }
    const int64_t rows = check_rows(train_);
    first_test_ = tests ? rows : rows - std::max<int64_t>(1, rows / 10);
    info_.train_count = first_test_;
    info_.test_count = tests ? check_rows(test_) : rows - first_test_;
    user_check(info_.train_count > 0 && info_.test_count > 0,
               "the arrays in '{}' have {} rows to train and {} to test on; have one at least of "
               "each",
               folder_, info_.train_count, info_.test_count);
    look_at_all();
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const bool own = split == Split::test && !test_.empty();
    const std::vector<NpyFile>& files = own ? test_ : train_;
    if (split == Split::test && !own) index += first_test_;
    for (size_t f = 0; f < parts.size(); ++f) {
      if (parts[f].data != nullptr) read_part(files[f], index, info_.fields[f], parts[f]);
    }
  }

 private:
  std::string path_of(const char* split, const RecordField& field) const {
    const std::string beside = fmt::format("{}/{}_{}.npy", folder_, split, field.name);
    const std::string inside = fmt::format("{}/{}/{}.npy", folder_, split, field.name);
    return !exists(beside) && exists(inside) ? inside : beside;
  }

  // Classes and tokens may be numbers of 64 bits, as NumPy has them by itself.
  static bool is_narrowed(const NpyFile& file, const RecordField& field) {
    return field.dtype == DType::i32 && file.row().dtype == DType::i64;
  }

  void add_field(const RecordField& wanted) {
    for (const NpyFile* file : {&train_.back(), test_.empty() ? &train_.back() : &test_.back()}) {
      const TensorType& row = file->row();
      user_check((row.dtype == wanted.dtype || is_narrowed(*file, wanted)) &&
                     row.shape == train_.back().row().shape,
                 "'{}' has rows of {}, and '{}' is {}; write it as that", file->path(),
                 to_string(row), wanted.name, to_string(TensorType{wanted.shape, wanted.dtype}));
    }
    RecordField field = wanted;
    field.shape = train_.back().row().shape;
    field.image = field.name == kPixels && field.shape.rank() == 3;
    const bool target = field.dtype == DType::i32 && field.shape.rank() == 0;
    if (target) field.pad = -1;
    pad_as_label(field);  // labels of every time step have a rank
    info_.fields.push_back(field);
  }

  static int64_t check_rows(const std::vector<NpyFile>& files) {
    for (const NpyFile& file : files) {
      user_check(file.rows() == files.front().rows(), "'{}' has {} rows, and '{}' has {}",
                 file.path(), file.rows(), files.front().path(), files.front().rows());
    }
    return files.front().rows();
  }

  static void read_part(const NpyFile& file, int64_t index, const RecordField& field,
                        const RecordPart& part) {
    const auto bytes = static_cast<size_t>(file.row().bytes().count);
    if (file.row().dtype == field.dtype && part.whole()) {
      file.read(index, {part.data, bytes});
      return;
    }
    thread_local std::vector<std::byte> room;
    room.resize(bytes);
    file.read(index, room);
    const int64_t per_entry = file.row().elements() / std::max<int64_t>(1, part.entries);
    for (int64_t i = 0; i < part.entries; ++i) {
      if (!is_narrowed(file, field)) {
        const auto entry = std::span(room).subspan(static_cast<size_t>(i * part.entry),
                                                   static_cast<size_t>(part.entry));
        std::ranges::copy(entry, part.data + i * part.stride);
        continue;
      }
      const auto* wide = reinterpret_cast<const int64_t*>(room.data()) + i * per_entry;
      std::ranges::transform(std::span(wide, static_cast<size_t>(per_entry)),
                             part.at<int32_t>(i).begin(),
                             [](int64_t number) { return static_cast<int32_t>(number); });
    }
  }

  // Reads everything once: whole numbers, for how large they are, and all bytes, for their sha256
  // and the mean of pixels.
  void look_at_all() {
    for (size_t f = 0; f < info_.fields.size(); ++f) {
      if (info_.fields[f].limit > 0) set_limit(f);
    }
    Sha256 hash;
    for (size_t f = 0; f < info_.fields.size(); ++f) {
      const bool pixels = info_.fields[f].image && info_.fields[f].dtype == DType::u8;
      if (pixels) set_statistics(f);
      for (const NpyFile* file : files_of(f)) {
        std::vector<std::byte> row(static_cast<size_t>(file->row().bytes().count));
        for (int64_t i = 0; i < file->rows(); ++i) {
          file->read(i, row);
          hash.update(row);
        }
      }
    }
    info_.train_sha256 = hash.hex();
  }

  std::vector<const NpyFile*> files_of(size_t f) const {
    return test_.empty() ? std::vector{&train_[f]} : std::vector{&train_[f], &test_[f]};
  }

  void set_limit(size_t f) {
    int64_t largest = 0;
    for (const NpyFile* file : files_of(f)) {
      std::vector<std::byte> row(static_cast<size_t>(file->row().bytes().count));
      for (int64_t i = 0; i < file->rows(); ++i) {
        file->read(i, row);
        for (int64_t k = 0; k < file->row().elements(); ++k) {
          const int64_t number = file->row().dtype == DType::i64
                                     ? reinterpret_cast<const int64_t*>(row.data())[k]
                                     : reinterpret_cast<const int32_t*>(row.data())[k];
          if (info_.fields[f].ignored == number) continue;
          user_check(number >= 0 && number < INT32_MAX,
                     "'{}' has {} in row {}; whole numbers are 0 and more there", file->path(),
                     number, i);
          largest = std::max(largest, number);
        }
      }
    }
    info_.fields[f].limit = largest + 1;
  }

  void set_statistics(size_t f) {
    const NpyFile& file = train_[f];
    std::vector<uint8_t> row(static_cast<size_t>(file.row().elements()));
    PixelSums sums(file.row().shape.back());
    for (int64_t i = 0; i < info_.train_count; ++i) {
      file.read(i, std::as_writable_bytes(std::span(row)));
      sums.add(row);
    }
    info_.constants = pixel_constants(sums.means(), sums.deviations());
  }

  const std::string folder_;
  std::vector<NpyFile> train_, test_;  // by field
  int64_t first_test_ = 0;             // of train_, where there are no others
  DatasetInfo info_;
};

}  // namespace

extern const DatasetDef data_npy{
    "npy",
    "arrays of NumPy's, a file for each field: train_pixels.npy, train_label.npy (--data-dir)",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      return std::make_unique<Arrays>(request);
    },
    "name one with train_FIELD.npy for every field that the model reads"};

}  // namespace thimble
