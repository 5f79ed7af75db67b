// NumPy arrays, one a field: FOLDER/train/FIELD.npy and FOLDER/test/FIELD.npy, a row for each record.
// They are read where they lie, a row at a time. Without a test folder the training records are tested
// on.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/dataset.h"
#include "data/npy.h"

namespace thimble {
namespace {

constexpr std::string_view kHow =
    "write the fields of records as FOLDER/train/FIELD.npy (numpy.save) and say --data-dir FOLDER";

class Arrays final : public Dataset {
 public:
  explicit Arrays(const DataRequest& request) {
    info_.name = "arrays";
    const bool tested = std::filesystem::is_directory(request.folder + "/test");
    for (const RecordField& wanted : request.wanted) {
      const auto open = [&](const char* split) {
        return NpyFile(fmt::format("{}/{}/{}.npy", request.folder, split, wanted.name));
      };
      train_.push_back(open("train"));
      test_.push_back(open(tested ? "test" : "train"));
      const NpyFile &train = train_.back(), &test = test_.back();
      user_check(train.dtype() == test.dtype() && train.row_shape() == test.row_shape(),
                 "'{}' of training and of testing are of different types or shapes in '{}'",
                 wanted.name, request.folder);
      info_.fields.push_back({.name = wanted.name,
                              .dtype = train.dtype(),
                              .shape = train.row_shape(),
                              .limit = std::max(train.limit(), test.limit()),
                              .strided = true});
    }
    user_check(!info_.fields.empty(), "no model says which arrays it reads; {}", kHow);
    info_.train_count = train_.front().rows();
    info_.test_count = test_.front().rows();
    for (const auto* files : {&train_, &test_}) {
      for (const NpyFile& file : *files) {
        user_check(file.rows() == files->front().rows() && file.rows() > 0,
                   "the arrays in '{}' have {} and {} rows; each wants one for every record",
                   request.folder, files->front().rows(), file.rows());
      }
    }
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const std::vector<NpyFile>& files = split == Split::train ? train_ : test_;
    for (size_t f = 0; f < parts.size(); ++f) {
      if (parts[f].data != nullptr) files[f].read_row(index, parts[f]);
    }
  }

 private:
  std::vector<NpyFile> train_, test_;
  DatasetInfo info_;
};

}  // namespace

extern const DatasetDef data_arrays;
const DatasetDef data_arrays{.name = "arrays",
                             .summary = "NumPy arrays, one a field of records",
                             .open = [](const DataRequest& request) -> std::unique_ptr<Dataset> {
                               return std::make_unique<Arrays>(request);
                             },
                             .where_to_get = kHow};

}  // namespace thimble
