#include "base/io/file_digest.h"

#include <algorithm>
#include <array>

#include "base/io/file.h"
#include "base/io/sha256.h"

namespace thimble {

std::string file_sha256(const std::string& path) {
  const ReadFile file(path);
  Sha256 hash;
  std::array<std::byte, 65536> block;
  for (int64_t at = 0; at < file.size();) {
    const int64_t size = std::min<int64_t>(file.size() - at, block.size());
    const std::span<std::byte> part(block.data(), static_cast<size_t>(size));
    file.read_at(at, part);
    hash.update(part);
    at += size;
  }
  return hash.hex();
}

}  // namespace thimble
