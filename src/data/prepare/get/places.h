// Where the data sets that people need are published, and what their files are.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace thimble {

enum class Unpack : uint8_t { none, gzip, tar, zip };

struct PublishedFile {
  std::string_view url;  // the last part of it is the file's name
  int64_t bytes = 0;     // 0: changes with time, as the next
  std::string_view sha256 = {};
  Unpack unpack = Unpack::none;
};

struct Place {
  std::string_view name;
  std::string_view summary;
  std::string_view terms;
  std::vector<PublishedFile> files;
  std::string_view next;  // the command that uses it, {} standing for the folder
};

std::span<const Place> all_places();
// UserError, listing the known ones.
const Place& find_place(std::string_view name);

}  // namespace thimble
