#include "data/format/append_contents.h"

#include <algorithm>
#include <array>

namespace thimble {

void append_contents(const ReadFile& from, AtomicFile& to) {
  std::array<std::byte, 65536> block;
  for (int64_t at = 0; at < from.size();) {
    const auto size = static_cast<size_t>(std::min<int64_t>(from.size() - at, block.size()));
    from.read_at(at, std::span(block).first(size));
    to.write(std::span<const std::byte>(block).first(size));
    at += static_cast<int64_t>(size);
  }
}

}  // namespace thimble
