// Files of a data set that belong together: none appears under its name before all are written, so
// that a disk that fills up leaves those that stood there as they were.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "base/io/file.h"

namespace thimble {

class FileGroup {
 public:
  // To be written, not to be committed.
  AtomicFile& add(std::string path) { return files_.emplace_back(std::move(path)); }
  void add(std::string path, std::string_view text) { add(std::move(path)).write(text); }
  // REQUIRES: called at most once.
  void commit() {
    for (AtomicFile& file : files_) file.commit();
  }

 private:
  std::list<AtomicFile> files_;
};

}  // namespace thimble
