// Tables of numbers as text: train.csv and, if it is there, test.csv (or val.csv, valid.csv); else the last tenth of
// the rows is for testing. Columns are parted by commas, semicolons or tabs, whichever the first line has most of.
//
//   label,width,height,depth      names, unless the first line is numbers
//   2,0.5,1.25,3                  a record
//
// A field of the model is its columns NAME, or NAME.0, NAME.1 and so on. Of the others, a label is the column 'label',
// 'target', 'class' or 'y', or else the last. One more field has all the rest in their order.
// Numbers are read once, into a nameless file on disk.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/mapped_file.h"
#include "base/io/sha256.h"
#include "data/dataset.h"
#include "data/label_field.h"
#include "data/labelled_images.h"

namespace thimble {
namespace {

constexpr Bytes kLargestTable = Bytes(int64_t{1} << 40);
constexpr int64_t kMostColumns = 1 << 20;

bool is_target(const RecordField& field) {
  return is_label_field(field.name) || field.name == "target" || field.name == "labels";
}

// One cell after another, of lines that are not empty.
class Cells {
 public:
  Cells(const std::string& path, char separator = ',')
      : path_(path), file_(path, "a table (CSV)", kLargestTable), separator_(separator) {
    rest_ = {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    const std::string_view first = rest_.substr(0, rest_.find('\n'));
    for (const char other : {';', '\t'}) {
      if (std::ranges::count(first, other) > std::ranges::count(first, separator_))
        separator_ = other;
    }
  }

  // The next line's cells, which are good until the next call. False: there is none.
  bool next(std::vector<std::string_view>& cells) {
    cells.clear();
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      split(line, cells);
      return true;
    }
    return false;
  }
  int64_t line() const { return line_; }
  const std::string& path() const { return path_; }

 private:
  void split(std::string_view line, std::vector<std::string_view>& cells) const {
    for (;;) {
      size_t end = line.find(separator_);
      if (line.starts_with('"')) {
        const size_t closing = line.find('"', 1);
        user_check(
            closing != std::string_view::npos,
            "line {} of '{}' has a quote that is not closed; quotes go from one separator to "
            "the next",
            line_, path_);
        end = line.find(separator_, closing);
      }
      std::string_view cell = line.substr(0, end);
      if (cell.size() >= 2 && cell.starts_with('"') && cell.ends_with('"')) {
        cell = cell.substr(1, cell.size() - 2);
      }
      while (cell.starts_with(' ')) cell.remove_prefix(1);
      while (cell.ends_with(' ')) cell.remove_suffix(1);
      cells.push_back(cell);
      user_check(std::ssize(cells) <= kMostColumns, "'{}' has more than {} columns", path_,
                 kMostColumns);
      if (end == std::string_view::npos) return;
      line.remove_prefix(end + 1);
    }
  }

  const std::string path_;
  const MappedFile file_;
  std::string_view rest_;
  char separator_;
  int64_t line_ = 0;
};

std::optional<double> number_in(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(number)) return {};
  return number;
}

// Which columns each field has, in order.
class Columns {
 public:
  Columns(std::span<const RecordField> fields, std::vector<std::string> names, size_t count,
          const std::string& path)
      : fields_(fields), names_(std::move(names)), taken_(count, false), path_(path) {
    of_.resize(fields.size());
    for (size_t f = 0; f < fields.size(); ++f) take_named(f);
    take_target();
    take_rest();
  }
  std::span<const size_t> of(size_t field) const { return of_[field]; }

 private:
  std::optional<size_t> column(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return {};
    return static_cast<size_t>(found - names_.begin());
  }
  void take(size_t field, size_t at) {
    of_[field].push_back(at);
    taken_[at] = true;
  }
  void take_named(size_t f) {
    const int64_t count = fields_[f].shape.elements();
    if (const auto one = column(fields_[f].name); one && count == 1) return take(f, *one);
    for (int64_t k = 0;; ++k) {
      const auto at = column(fmt::format("{}.{}", fields_[f].name, k));
      if (!at) return;
      take(f, *at);
    }
  }
  void take_target() {
    size_t f = 0;
    while (f < fields_.size() && !(is_target(fields_[f]) && of_[f].empty())) ++f;
    if (f == fields_.size() || fields_[f].shape.elements() != 1) return;
    for (const char* name : {"label", "target", "class", "y"}) {
      if (const auto at = column(name); at && !taken_[*at]) return take(f, *at);
    }
    for (size_t at = taken_.size(); at-- > 0;) {
      if (!taken_[at]) return take(f, at);
    }
  }
  void take_rest() {
    std::optional<size_t> field;
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (!of_[f].empty()) continue;
      user_check(
          !field,
          "'{}' says neither where '{}' is nor '{}'; name their columns {}.0, {}.1 and so on",
          path_, fields_[*field].name, fields_[f].name, fields_[*field].name, fields_[*field].name);
      field = f;
    }
    for (size_t at = 0; at < taken_.size() && field; ++at) {
      if (!taken_[at]) of_[*field].push_back(at);
    }
    for (size_t f = 0; f < fields_.size(); ++f) {
      user_check(std::ssize(of_[f]) == fields_[f].shape.elements(),
                 "'{}' has {} columns for '{}', which is {}", path_, of_[f].size(), fields_[f].name,
                 to_string(TensorType{fields_[f].shape, fields_[f].dtype}));
    }
  }

  std::span<const RecordField> fields_;
  const std::vector<std::string> names_;
  std::vector<bool> taken_;
  const std::string& path_;
  std::vector<std::vector<size_t>> of_;
};

class Tables final : public Dataset {
 public:
  explicit Tables(const DataRequest& request) {
    info_.name = "csv";
    user_check(!request.wanted.empty(), "the data set 'csv' is of what a model reads; name one");
    info_.fields = request.wanted;
    for (RecordField& field : info_.fields) {
      user_check(field.dtype == DType::f32 || field.dtype == DType::i32 || field.dtype == DType::u8,
                 "the data set 'csv' has numbers, and '{}' is {}", field.name,
                 name_of(field.dtype));
      pad_as_label(field);
      field.variable = false;
      offsets_.push_back(record_);
      record_ += field.shape.elements() * size_of(field.dtype);
    }
    const std::string& folder = request.folder;
    const int64_t rows = read_table(folder + "/train.csv", train_, info_.train_sha256);
    std::string tests;
    for (const char* name : {"/test.csv", "/val.csv", "/valid.csv"}) {
      if (tests.empty() && exists(folder + name)) tests = folder + name;
    }
    info_.train_count = tests.empty() ? rows - std::max<int64_t>(1, rows / 10) : rows;
    info_.test_count =
        tests.empty() ? rows - info_.train_count : read_table(tests, test_, info_.test_sha256);
    user_check(info_.train_count > 0 && info_.test_count > 0,
               "the tables in '{}' have {} rows to train and {} to test on; have one at least of "
               "each",
               folder, info_.train_count, info_.test_count);
    for (size_t f = 0; f < info_.fields.size(); ++f) set_statistics(f);
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const bool own = split == Split::test && test_;
    const ReadFile& file = own ? *test_ : *train_;
    if (split == Split::test && !own) index += info_.train_count;
    for (size_t f = 0; f < parts.size(); ++f) {
      const RecordPart& part = parts[f];
      for (int64_t i = 0; part.data != nullptr && i < (part.whole() ? 1 : part.entries); ++i) {
        const int64_t size = part.whole() ? part.entry * part.entries : part.entry;
        file.read_at(index * record_ + offsets_[f] + i * part.entry,
                     {part.data + i * part.stride, static_cast<size_t>(size)});
      }
    }
  }

 private:
  // Of pixels, over the records to train on.
  void set_statistics(size_t f) {
    RecordField& field = info_.fields[f];
    field.image = field.name == kPixels && field.shape.rank() == 3;
    if (!field.image || field.dtype != DType::u8) return;
    std::vector<uint8_t> row(static_cast<size_t>(field.shape.elements()));
    PixelSums sums(field.shape.back());
    for (int64_t i = 0; i < info_.train_count; ++i) {
      train_->read_at(i * record_ + offsets_[f], std::as_writable_bytes(std::span(row)));
      sums.add(row);
    }
    info_.constants = pixel_constants(sums.means(), sums.deviations());
  }

  int64_t read_table(const std::string& path, std::optional<ReadFile>& to, std::string& sha256) {
    Cells cells(path);
    std::vector<std::string_view> row;
    user_check(cells.next(row), "'{}' is empty", path);
    std::vector<std::string> names;
    const bool named = !std::ranges::all_of(
        row, [](std::string_view cell) { return number_in(cell).has_value(); });
    if (named) names.assign(row.begin(), row.end());
    const size_t count = row.size();
    const Columns columns(info_.fields, std::move(names), count, path);
    SpoolFile spool(path);
    Sha256 hash;
    std::vector<std::byte> record(static_cast<size_t>(record_));
    int64_t rows = 0;
    for (bool more = !named || cells.next(row); more; more = cells.next(row), ++rows) {
      user_check(row.size() == count, "line {} of '{}' has {} columns, and the first line {}",
                 cells.line(), path, row.size(), count);
      for (size_t f = 0; f < info_.fields.size(); ++f) put(cells, row, columns.of(f), f, record);
      spool.write(record);
      hash.update(record);
    }
    to.emplace(std::move(spool).finish());
    sha256 = hash.hex();
    return rows;
  }

  // A record's numbers of a field; whole ones count for its limit.
  void put(const Cells& cells, std::span<const std::string_view> row,
           std::span<const size_t> columns, size_t f, std::span<std::byte> record) {
    RecordField& field = info_.fields[f];
    std::byte* to = record.data() + offsets_[f];
    for (const size_t at : columns) {
      const std::optional<double> number = number_in(row[at]);
      user_check(number.has_value(), "line {} of '{}' has '{}' in column {}, which is no number",
                 cells.line(), cells.path(), row[at], at + 1);
      const bool fits = field.dtype == DType::f32 ||
                        (*number == std::floor(*number) && *number >= 0 &&
                         *number <= (field.dtype == DType::u8 ? 255.0 : 2147483646.0)) ||
                        (field.ignored && *number == static_cast<double>(*field.ignored));
      user_check(fits, "line {} of '{}' has {} in column {}, and '{}' is whole numbers from 0 on{}",
                 cells.line(), cells.path(), row[at], at + 1, field.name,
                 field.dtype == DType::u8 ? " to 255" : "");
      with_any_type(field.dtype, [&]<class T>(TypeTag<T>) {
        const T value = static_cast<T>(*number);
        std::memcpy(to, &value, sizeof(T));
        to += sizeof(T);
      });
      if (field.limit > 0 && field.dtype == DType::i32) {
        largest_ = std::max(largest_, static_cast<int64_t>(*number));
        field.limit = std::max<int64_t>(2, largest_ + 1);
      }
    }
  }

  DatasetInfo info_;
  std::vector<int64_t> offsets_;  // of fields in a record, in bytes
  int64_t record_ = 0;            // bytes
  int64_t largest_ = 0;
  std::optional<ReadFile> train_, test_;
};

}  // namespace

extern const DatasetDef data_csv{
    "csv", "tables of numbers as text: train.csv and test.csv, a record a line (--data-dir)",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      return std::make_unique<Tables>(request);
    },
    "name one with train.csv"};

}  // namespace thimble
