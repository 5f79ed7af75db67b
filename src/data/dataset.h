// A set of records that stays where it is: records are read one at a time, straight into the
// caller's bytes, and the set is never resident in memory. Sets are one file each in data/sets; the
// file name is the registration (see cmake/tables.cmake). One of the caller's own is a class
// derived from Dataset (examples/train_mlp.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/record.h"
#include "base/own_settings.h"

namespace thimble {

class Fields;

enum class Split : uint8_t { train, test };

std::string_view name_of(Split split);  // "train", "test"

// Numbers that a model keeps with its weights and the data decide, by the name of its value.
struct DataConstant {
  std::string name;
  std::vector<float> numbers;
};

struct DatasetInfo {
  std::string name;
  int64_t train_count = 0;
  int64_t test_count = 0;
  std::vector<RecordField> fields = {};
  std::vector<DataConstant> constants = {};
  // Over the records of each split, in order. Empty where the rest says it all: records that are
  // computed.
  std::string train_sha256 = {};
  std::string test_sha256 = {};
  std::string vocabulary_sha256 = {};  // of sets of text that come with one
  // Reading a record takes as long as some computing (pictures are decoded): it pays to read ahead,
  // on several threads.
  bool decoded = false;

  int64_t count(Split split) const { return split == Split::train ? train_count : test_count; }
  // InternalError when there is none of that name. Allocate nothing.
  const RecordField& field(std::string_view wanted) const;
  const std::vector<float>& constant(std::string_view wanted) const;
};

// Constant after construction: any number of threads may read at once.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  virtual const DatasetInfo& info() const = 0;
  // Entries that the record has along the first axis of a field: as many as the shape says, but of
  // fields that are variable. REQUIRES: as read().
  virtual int64_t length(Split split, int64_t index, size_t field) const;
  // Record `index` of the split, a part for each of info().fields. Allocates nothing. Throws
  // UserError when a file changed or failed meanwhile.
  // REQUIRES: 0 <= index < info().count(split); a part that is wanted has length() entries, and
  // unless the field is strided, they are in one piece.
  virtual void read(Split split, int64_t index, std::span<const RecordPart> parts) const = 0;
  // That in a pass over the training records, of sets whose records move from pass to pass.
  virtual void read_in_epoch(Split split, int64_t index, uint64_t epoch,
                             std::span<const RecordPart> parts) const;
};

// Settings of data sets, by their names: each a struct of the set's own file.
using DataSettings = std::map<std::string, OwnSettings, std::less<>>;

// The facts that a data set is opened with.
struct DataRequest {
  std::string folder = {};  // of its files
  // Fields that the model reads by itself: sets that are made on the spot have these.
  std::vector<RecordField> wanted = {};
  std::optional<int64_t> train_count = {};  // likewise, of sets made on the spot
  std::optional<int64_t> test_count = {};
  uint64_t seed = 0;  // of the run
  DataSettings settings = {};

  // Settings of one set; usual ones where nothing was chosen.
  template <class Own>
  Own own_of(std::string_view set) const {
    const auto found = settings.find(set);
    return found == settings.end() ? Own() : found->second.value<Own>();
  }
};

struct DatasetDef {
  std::string_view name;  // = file name = table entry
  std::string_view summary;
  // Checked in full. Throws UserError on unsound files, naming the one.
  std::unique_ptr<Dataset> (*open)(const DataRequest& request) = nullptr;
  std::string_view where_to_get = {};  // the files of a set that needs a folder
  // Lists what can be chosen about it; `own` is its part of DataSettings, made where it is empty.
  void (*fields)(OwnSettings& own, Fields& fields) = nullptr;
  std::string_view gives_way_to = {};  // a set that is opened in its place for models made for that
};

// The generated table of src/data/sets, in name order.
std::span<const DatasetDef* const> all_datasets();

// The set that a model is fed from whose usual one is `usual`; `named` may be empty. Null: there is
// none of that name.
const DatasetDef* find_dataset(std::string_view named, std::string_view usual);

// UserError on an unknown one, listing the known ones and naming the nearest.
const DatasetDef& dataset_named(std::string_view name);
// Opens a data set by its name. UserError on an unknown one, or a missing folder (saying where to
// get the files).
std::unique_ptr<Dataset> open_dataset(std::string_view name, const DataRequest& request = {});

}  // namespace thimble
