// Memory that is kept as addresses alone.
#pragma once

#include <cstddef>
#include <span>

namespace thimble {

// Whole pages of the range go back to the system; read again, they are zeros. REQUIRES: private memory
// without a file.
void release_pages(std::span<std::byte> range);

}  // namespace thimble
