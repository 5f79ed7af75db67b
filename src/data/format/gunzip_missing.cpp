// Stands in for gunzip.cpp in a build without zlib.
#include "base/error.h"
#include "data/format/gunzip.h"

namespace thimble {

ReadFile gunzip(const ReadFile& packed, size_t,
                const std::function<int64_t(std::span<const std::byte>)>&) {
  user_error("'{}' is compressed, and this build has no zlib; unpack it with gunzip",
             packed.path());
}

}  // namespace thimble
