// Pictures in folders, one for each class, as people have them:
//
//   FOLDER/train/cat/1.jpg ...   FOLDER/val/cat/7.jpg ...     (or valid, test)
//   FOLDER/cat/1.jpg ...                                      every tenth of a class is for testing
//
// Classes are numbered in the order of their names.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/sha256.h"
#include "data/format/picture.h"
#include "data/picture_set.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

// Names behind each other in one text, so that a million take what their letters take.
class NameList {
 public:
  void add(std::string_view name, int32_t label) {
    ends_.push_back(static_cast<int64_t>(text_.size() + name.size()));
    text_ += name;
    labels_.push_back(label);
  }
  int64_t count() const { return std::ssize(ends_); }
  std::string_view name(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    const auto begin = static_cast<size_t>(i == 0 ? 0 : ends_[at - 1]);
    return std::string_view(text_).substr(begin, static_cast<size_t>(ends_[at]) - begin);
  }
  int32_t label(int64_t i) const { return labels_[static_cast<size_t>(i)]; }

 private:
  std::string text_;
  std::vector<int64_t> ends_;
  std::vector<int32_t> labels_;
};

// In order of their names; hidden ones are nobody's.
std::vector<std::string> entries_of(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with('.') && entry->is_directory(ignored) == folders) {
      names.push_back(std::move(name));
    }
  }
  user_check(!error, "cannot read the folder '{}': {}", folder, why_refused(error.value()));
  std::ranges::sort(names);
  return names;
}

std::string folder_of_tests(const std::string& folder) {
  for (const char* name : {"val", "valid", "test"}) {
    std::string path = folder + "/" + name;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return path;
  }
  return "";
}

// Where the classes of the training pictures are.
std::string folder_of_training(const std::string& folder) {
  const std::string inner = folder + "/train";
  std::error_code ignored;
  return fs::is_directory(inner, ignored) ? inner : folder;
}

std::vector<std::string> classes_in(const std::string& folder) {
  std::vector<std::string> classes = entries_of(folder, true);
  user_check(classes.size() >= 2,
             "'{}' has {} folders of pictures, and classes are told apart: there must be a folder "
             "for each of two or more",
             folder, classes.size());
  return classes;
}

class Images final : public PictureSet {
 public:
  explicit Images(const DataRequest& request)
      : Images(request, classes_in(folder_of_training(request.folder))) {}

 private:
  Images(const DataRequest& request, const std::vector<std::string>& classes)
      : PictureSet("images", request, std::ssize(classes)),
        folders_{folder_of_training(request.folder), folder_of_tests(request.folder)} {
    const bool cut = folders_[1].empty() || folders_[0] == request.folder;
    if (cut) folders_[1] = folders_[0];
    for (size_t label = 0; label < classes.size(); ++label) {
      list_class(Split::train, classes[label], static_cast<int32_t>(label), cut);
    }
    if (!cut) list_tests(classes);
    set_counts(lists_[0].count(), lists_[1].count());
    set_sha256(sha256_of(Split::train), sha256_of(Split::test));
    measure_some();
  }

  void list_class(Split split, const std::string& name, int32_t label, bool cut) {
    const std::string folder = folder_of(split) + "/" + name;
    int64_t found = 0;
    for (const std::string& file : entries_of(folder, false)) {
      if (!is_picture(file)) continue;
      const bool test = split == Split::test || (cut && is_for_testing(found));
      lists_[test ? 1 : 0].add(name + "/" + file, label);
      ++found;
    }
    user_check(found > 0,
               "the class folder '{}' has no pictures (.jpg, .jpeg, .png); put some there, or "
               "remove it",
               folder);
  }

  void list_tests(const std::vector<std::string>& classes) {
    const std::vector<std::string> tested = entries_of(folders_[1], true);
    user_check(!tested.empty(), "'{}' has no folders of pictures; put some there, or remove it",
               folders_[1]);
    for (const std::string& name : tested) {
      const auto known = std::ranges::find(classes, name);
      user_check(known != classes.end(),
                 "'{}/{}' is a class that '{}' does not have; move its pictures, or have some to "
                 "train on",
                 folders_[1], name, folders_[0]);
      list_class(Split::test, name, static_cast<int32_t>(known - classes.begin()), false);
    }
  }

  // Over names and sizes: reading every picture would take as long as an epoch.
  std::string sha256_of(Split split) const {
    Sha256 hash;
    const NameList& list = list_of(split);
    for (int64_t i = 0; i < list.count(); ++i) {
      struct stat about = {};
      const std::string path = name_of_picture(split, i);
      user_check(::stat(path.c_str(), &about) == 0 && about.st_size > 0,
                 "the picture '{}' is empty; get a fresh copy of it, or remove it", path);
      const std::string line = fmt::format("{} {}\n", list.name(i), about.st_size);
      hash.update(std::as_bytes(std::span(line)));
    }
    return hash.hex();
  }

  const NameList& list_of(Split split) const { return lists_[static_cast<size_t>(split)]; }
  const std::string& folder_of(Split split) const { return folders_[static_cast<size_t>(split)]; }

  std::span<const std::byte> file_of(Split split, int64_t index,
                                     std::vector<std::byte>& room) const override {
    const ReadFile file(name_of_picture(split, index));
    user_check(file.size() <= kLargest, "the picture '{}' has {} bytes; {} are the most",
               file.path(), file.size(), kLargest);
    room.resize(static_cast<size_t>(file.size()));
    file.read_at(0, room);
    return room;
  }
  std::string name_of_picture(Split split, int64_t index) const override {
    return fmt::format("{}/{}", folder_of(split), list_of(split).name(index));
  }
  int32_t label_of(Split split, int64_t index) const override {
    return list_of(split).label(index);
  }

  static constexpr int64_t kLargest = int64_t{1} << 28;
  std::string folders_[2];
  NameList lists_[2];  // by split
};

}  // namespace

extern const DatasetDef data_images{
    "images", "your own pictures, JPEG or PNG, in a folder for each class (--data-dir)",
    [](const DataRequest& request) -> std::unique_ptr<Dataset> {
      return std::make_unique<Images>(request);
    },
    "name one that has a folder of pictures for each class, or `train` and `val` with such in "
    "them"};

}  // namespace thimble
