// The contents of a tar archive, without reading it: names and places.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/io/file.h"

namespace thimble {

struct TarEntry {
  std::string name;
  int64_t offset = 0;  // of its first byte in the archive
  int64_t size = 0;
};

// Calls each(entry) for every regular file, in order. UserError, naming the archive, where it is
// truncated or none.
void for_each_in_tar(const ReadFile& archive, const std::function<void(const TarEntry&)>& each);

}  // namespace thimble
