#include "data/guess.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 1 << 16;  // of a folder that are looked at

struct Names {
  std::vector<std::string> files, folders;
};

Names names_in(const fs::path& folder) {
  Names names;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    std::error_code ignored;
    std::vector<std::string>& to = at->is_directory(ignored) ? names.folders : names.files;
    to.push_back(at->path().filename().string());
    if (names.files.size() + names.folders.size() >= kMostNames) break;
  }
  std::ranges::sort(names.files);
  std::ranges::sort(names.folders);
  return names;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

// The first name that the test holds for; empty: there is none.
template <class Test>
std::string first_of(const std::vector<std::string>& names, const Test& test) {
  const auto found = std::ranges::find_if(names, test);
  return found == names.end() ? "" : *found;
}

bool is_picture(const std::string& name) {
  const std::string small = lower(name);
  return small.ends_with(".jpg") || small.ends_with(".jpeg") || small.ends_with(".png");
}

// A picture in the folder of a class, which may lie in that of a split.
std::string folder_of_pictures(const fs::path& folder, const Names& names, int deep) {
  for (const std::string& inner : names.folders) {
    const Names there = names_in(folder / inner);
    if (const std::string picture = first_of(there.files, is_picture); !picture.empty()) {
      return inner + "/" + picture;
    }
    if (deep == 0) continue;
    const std::string below = folder_of_pictures(folder / inner, there, deep - 1);
    if (!below.empty()) return inner + "/" + below;
  }
  return "";
}

bool is_token_file(const std::string& name) {
  return name == "train.bin" ||
         (name.ends_with(".bin") && name.find("_train") != std::string::npos);
}

}  // namespace

GuessedData guess_data(const std::string& folder) {
  const Names names = names_in(folder);
  const auto ends = [](std::string_view end) {
    return [end](const std::string& name) { return lower(name).ends_with(end); };
  };
  const auto is = [](std::string_view whole) {
    return [whole](const std::string& name) { return name == whole; };
  };
  // From what is called most particularly on.
  const std::vector<GuessedData> known = {
      {"cifar10", first_of(names.files, is("data_batch_1.bin"))},
      {"idx", first_of(names.files,
                       [](const std::string& name) {
                         return name.find("-images-idx3-ubyte") != std::string::npos ||
                                name.find("-images.idx3-ubyte") != std::string::npos;
                       })},
      {"documents", first_of(names.files, is("train.documents"))},
      {"pairs", first_of(names.files, is("train.pairs"))},
      {"tokens", first_of(names.files, is_token_file)},
      {"csv", first_of(names.files, is("train.csv"))},
      {"npy", first_of(names.files,
                       [](const std::string& name) {
                         return name.starts_with("train_") && name.ends_with(".npy");
                       })},
      {"webdataset", first_of(names.files, ends(".tar"))},
  };
  for (const GuessedData& one : known) {
    if (!one.since.empty()) return one;
  }
  if (std::ranges::binary_search(names.folders, "train")) {
    const Names inside = names_in(fs::path(folder) / "train");
    const std::string array = first_of(inside.files, ends(".npy"));
    if (!array.empty()) return {"npy", "train/" + array};
  }
  const std::string picture = folder_of_pictures(folder, names, 1);
  if (!picture.empty()) return {"images", picture};
  user_error(
      "'{}' holds nothing that a data set is known by: pictures in a folder for each class, "
      "train.csv, train_FIELD.npy, train.bin of tokens, train.pairs, *.tar, or the files of MNIST "
      "or "
      "CIFAR-10; say what it is with --data NAME --data-dir {}",
      folder, folder);
}

}  // namespace thimble
