#include "data/prepare/get/get.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/error.h"
#include "base/io/file.h"
#include "data/format/append_contents.h"
#include "data/format/gunzip.h"
#include "data/prepare/get/fetch.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

std::string name_of_url(std::string_view url) {
  return std::string(url.substr(url.rfind('/') + 1));
}

std::string mirrored(std::string_view mirror, const std::string& name) {
  while (mirror.ends_with('/')) mirror.remove_suffix(1);
  return std::string(mirror) + "/" + name;
}

// OUT/SHA256SUMS, as the program of that name has it.
class Sums {
 public:
  explicit Sums(const std::string& folder) : path_(folder + "/SHA256SUMS") {
    if (!exists(path_)) return;
    const std::string text = read_text(path_, "a list of checksums", Bytes(1 << 20));
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      if (line.size() > 66) sums_[line.substr(66)] = line.substr(0, 64);
      at = end + 1;
    }
  }

  std::string of(const std::string& name) const {
    const auto at = sums_.find(name);
    return at == sums_.end() ? "" : at->second;
  }

  void set(const std::string& name, const std::string& sha256) {
    if (of(name) == sha256) return;
    sums_[name] = sha256;
    std::string text;
    for (const auto& [file, sum] : sums_) text += fmt::format("{}  {}\n", sum, file);
    write_file(path_, text);
  }

 private:
  std::string path_;
  std::map<std::string, std::string> sums_;
};

void copy_file(const ReadFile& from, const std::string& to) {
  AtomicFile file(to);
  append_contents(from, file);
  file.commit();
}

void unpack_gzip(const std::string& path) {
  const ReadFile packed(path);
  user_check(packed.size() > 18, "'{}' is no gzip file; get it again", path);
  // The last four bytes say how much it is.
  uint32_t size = 0;
  packed.read_at(packed.size() - 4, std::as_writable_bytes(std::span(&size, 1)));
  const ReadFile plain =
      gunzip(packed, 1, [&](std::span<const std::byte>) { return static_cast<int64_t>(size); });
  copy_file(plain, path.substr(0, path.size() - 3));
}

void unpack(const std::string& path, Unpack how, const std::string& folder) {
  if (how == Unpack::none) return;
  if (how == Unpack::gzip) return unpack_gzip(path);
  std::vector<std::string> words =
      how == Unpack::tar ? std::vector<std::string>{"tar", "-xf", path, "-C", folder}
                         : std::vector<std::string>{"unzip", "-q", "-o", path, "-d", folder};
  std::string said;
  int status = run_program(words, said);
  if (status == 127 && how != Unpack::tar) {
    words = {"python3", "-m", "zipfile", "-e", path, folder};
    status = run_program(words, said);
  }
  user_check(status != 127, "there is no `{}` program to unpack '{}' with; install it",
             how == Unpack::tar ? "tar" : "unzip", path);
  user_check(status == 0, "'{}' cannot be unpacked: {} ended with {}; get it again", path, words[0],
             status);
}

// Both say why not.
bool is_sound(const std::string& path, const ExpectedFile& wanted, const GetOptions& options) {
  try {
    check_file(path, wanted);
    return true;
  } catch (const UserError& error) {
    options.say(error.what());
    return false;
  }
}

bool unpacks(const std::string& path, Unpack how, const GetOptions& options) {
  try {
    unpack(path, how, options.out);
    return true;
  } catch (const UserError& error) {
    options.say(error.what());
    return false;
  }
}

std::string local_file(const std::string& from, const std::string& name, size_t files) {
  std::error_code ignored;
  if (fs::is_directory(from, ignored)) {
    std::string path = from + "/" + name;
    user_check(exists(path),
               "there is no '{}', as it is published, in '{}'; what is unpacked already needs no "
               "`data get`: name its folder with --data-dir",
               name, from);
    return path;
  }
  user_check(exists(from), "there is no file or folder '{}'", from);
  user_check(files == 1, "'{}' is one file, and the set has {}; name their folder", from, files);
  return from;
}

}  // namespace

void get_data(const Place& place, const GetOptions& options) {
  ensure_directory(options.out);
  Sums sums(options.out);
  for (const PublishedFile& file : place.files) {
    const std::string name = name_of_url(file.url);
    const std::string path = options.out + "/" + name;
    const bool stated = !file.sha256.empty();
    const ExpectedFile wanted = {
        file.bytes, stated ? std::string(file.sha256) : sums.of(name),
        stated ? "get it again"
               : fmt::format("get it again, or, where it was published anew, remove its line from "
                             "'{}/SHA256SUMS'",
                             options.out)};
    const bool known = !wanted.sha256.empty();
    const bool sound = exists(path) && is_sound(path, wanted, options);
    // Without a sum it may be a page that somebody sent in its place.
    const bool unpacked = sound && !known && unpacks(path, file.unpack, options);
    if (known ? sound : unpacked) {
      options.say(fmt::format("{} is there already", path));
    } else if (!options.from.empty()) {
      const std::string local = local_file(options.from, name, place.files.size());
      check_file(local, wanted);
      copy_file(ReadFile(local), path);
    } else {
      const std::string url =
          options.url.empty() ? std::string(file.url) : mirrored(options.url, name);
      fetch({url, path, wanted}, [&](int64_t arrived, int64_t bytes) {
        if (options.progress) options.progress(name, arrived, bytes);
      });
    }
    const std::string found = check_file(path, wanted);
    if (!unpacked) unpack(path, file.unpack, options.out);
    if (!stated) sums.set(name, found);
  }
}

}  // namespace thimble
