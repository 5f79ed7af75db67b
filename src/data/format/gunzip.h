// Unpacks a gzip file to disk, through two small buffers, however large it turns out to be.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/io/file.h"

namespace thimble {

// `size_from` gets the first `prefix` unpacked bytes (fewer when the file has fewer) and returns
// how many bytes the whole must have; it may throw UserError. More bytes than that stop the
// unpacking at once (so a bomb costs no more disk than it admits to), fewer are an error too.
ReadFile gunzip(const ReadFile& packed, size_t prefix,
                const std::function<int64_t(std::span<const std::byte>)>& size_from);

}  // namespace thimble
