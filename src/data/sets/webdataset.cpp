// Pictures in tar archives, as WebDataset has them: KEY.jpg (or .jpeg, .png) and KEY.cls, a whole number
// as text, one behind the other.
//
//   FOLDER/train-0000.tar, train-0001.tar ...   FOLDER/val-0000.tar ... (or valid, test)
//   FOLDER/0000.tar ...                         every tenth record is for testing
//
// Archives stay as they are: records are read from where they lie, in any order.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/sha256.h"
#include "data/format/picture.h"
#include "data/format/tar.h"
#include "data/picture_set.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

// A picture in an archive.
struct Place {
  int64_t offset = 0;
  int32_t size = 0;
  int32_t archive = 0;
  int32_t label = 0;
};

// The contents of the archives of a folder.
struct Contents {
  std::vector<ReadFile> archives;
  std::vector<Place> records[2];  // by split
  std::string sha256[2];
  int64_t classes = 0;
};

bool is_of(std::string_view name, std::initializer_list<std::string_view> splits) {
  return std::ranges::any_of(splits,
                             [&](std::string_view split) { return name.starts_with(split); });
}

// Everything before the first dot of the file's own name.
std::string_view key_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return name.substr(0, name.find('.', slash == std::string_view::npos ? 0 : slash));
}

int32_t read_label(const ReadFile& archive, const TarEntry& entry) {
  std::array<char, 16> text{};
  const bool fits = entry.size > 0 && entry.size < std::ssize(text);
  if (fits) {
    archive.read_at(entry.offset,
                    std::as_writable_bytes(std::span(text)).first(static_cast<size_t>(entry.size)));
  }
  int32_t label = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  const bool whole = error == std::errc() && (*end == '\0' || *end == '\n' || *end == '\r');
  user_check(fits && whole && label >= 0 && label < (1 << 24),
             "'{}' in the archive '{}' is no class: a whole number as text is wanted", entry.name,
             archive.path());
  return label;
}

class Reader {
 public:
  explicit Reader(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::string name = entry->path().filename().string();
      if (name.ends_with(".tar")) names.push_back(std::move(name));
    }
    user_check(!error && !names.empty(),
               "there are no archives (.tar) in '{}'; name the folder that has them", folder);
    std::ranges::sort(names);
    const bool tests = std::ranges::any_of(names, [](const std::string& name) {
      return is_of(name, {"val", "test"});
    });
    for (const std::string& name : names) {
      contents_.archives.emplace_back(folder + "/" + name);
      read(tests ? is_of(name, {"val", "test"}) : std::optional<bool>());
    }
    for (size_t split = 0; split < 2; ++split) {
      contents_.sha256[split] = hash_[split].hex();
      user_check(!contents_.records[split].empty(),
                 "the archives in '{}' have no pictures to {} on (KEY.jpg and KEY.cls)", folder,
                 split == 0 ? "train" : "test");
    }
    user_check(contents_.classes >= 2,
               "all pictures in '{}' are of class 0, and classes are told apart", folder);
  }

  Contents take() && { return std::move(contents_); }

 private:
  // `test`: nothing, where every tenth record is.
  void read(std::optional<bool> test) {
    const ReadFile& archive = contents_.archives.back();
    std::string key;
    TarEntry picture, label;
    const auto close = [&] {
      if (picture.size == 0 && label.size == 0) return;
      user_check(picture.size > 0 && label.size > 0,
                 "the record '{}' in the archive '{}' has no {}; a picture and its class "
                 "(KEY.jpg, KEY.cls) lie behind each other",
                 key, archive.path(), picture.size == 0 ? "picture" : "class");
      add(picture, read_label(archive, label), test);
      picture = label = {};
    };
    for_each_in_tar(archive, [&](const TarEntry& entry) {
      if (key_of(entry.name) != key) {
        close();
        key = key_of(entry.name);
      }
      if (is_picture(entry.name)) picture = entry;
      if (entry.name.ends_with(".cls")) label = entry;
    });
    close();
  }

  void add(const TarEntry& picture, int32_t label, std::optional<bool> test) {
    user_check(picture.size < INT32_MAX, "'{}' in the archive '{}' has {} bytes", picture.name,
               contents_.archives.back().path(), picture.size);
    const size_t split = test.value_or(is_for_testing(seen_++)) ? 1 : 0;
    contents_.records[split].push_back({picture.offset, static_cast<int32_t>(picture.size),
                                        static_cast<int32_t>(contents_.archives.size()) - 1,
                                        label});
    contents_.classes = std::max<int64_t>(contents_.classes, label + 1);
    const std::string line = fmt::format("{} {} {}\n", picture.name, picture.size, label);
    hash_[split].update(std::as_bytes(std::span(line)));
  }

  Contents contents_;
  Sha256 hash_[2];  // over names, sizes and classes
  int64_t seen_ = 0;
};

class WebDataset final : public PictureSet {
 public:
  WebDataset(const DataRequest& request, Contents contents)
      : PictureSet("webdataset", request, contents.classes), contents_(std::move(contents)) {
    set_counts(std::ssize(contents_.records[0]), std::ssize(contents_.records[1]));
    set_sha256(contents_.sha256[0], contents_.sha256[1]);
    measure_some();
  }

 private:
  const Place& place(Split split, int64_t index) const {
    return contents_.records[static_cast<size_t>(split)][static_cast<size_t>(index)];
  }
  const ReadFile& archive(const Place& place) const {
    return contents_.archives[static_cast<size_t>(place.archive)];
  }

  std::span<const std::byte> file_of(Split split, int64_t index,
                                     std::vector<std::byte>& room) const override {
    const Place& at = place(split, index);
    room.resize(static_cast<size_t>(at.size));
    archive(at).read_at(at.offset, room);
    return room;
  }
  std::string name_of_picture(Split split, int64_t index) const override {
    const Place& at = place(split, index);
    return fmt::format("{} at byte {}", archive(at).path(), at.offset);
  }
  int32_t label_of(Split split, int64_t index) const override { return place(split, index).label; }

  const Contents contents_;
};

}  // namespace

extern const DatasetDef data_webdataset{
    "webdataset", "pictures in tar archives, as WebDataset has them (--data-dir)",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      return std::make_unique<WebDataset>(request, Reader(request.folder).take());
    },
    "name the folder of the archives"};

}  // namespace thimble
