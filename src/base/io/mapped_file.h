// A file seen as memory: pages come from the disk as they are looked at, and go again under
// pressure, so that what reads headers alone holds headers alone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/io/file.h"
#include "base/number/bytes.h"

namespace thimble {

class MappedFile {
 public:
  // UserError where it is no regular file, or has more than `most` bytes; `what` is what it should
  // be: "an ONNX file".
  MappedFile(const std::string& path, std::string_view what, Bytes most);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // The pages read so far need not stay in memory.
  void forget() const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace thimble
