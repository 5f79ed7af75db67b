// A data set's files in a folder: fetched from where they are published, or taken from disk;
// checked and unpacked.
#pragma once

#include <functional>
#include <string>

#include "data/prepare/get/places.h"

namespace thimble {

struct GetOptions {
  std::string out;        // folder
  std::string from = {};  // a folder that has the files already, or the file where there is one
  std::string url = {};   // a mirror: what stands in front of the files' names, in place of theirs
  std::function<void(std::string_view file, int64_t arrived, int64_t bytes)> progress = {};
  std::function<void(const std::string& sentence)> say = {};
};

// Files that are there already and sound are left alone. The sha256 of files whose publishers state
// none are written to OUT/SHA256SUMS the first time and checked against it from then on. UserError
// as fetch().
void get_data(const Place& place, const GetOptions& options);

}  // namespace thimble
