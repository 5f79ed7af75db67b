// CRC-32C (Castagnoli), as framed records of other programs carry it.
#pragma once

#include <cstdint>
#include <string_view>

namespace thimble {

uint32_t crc32c(std::string_view bytes);

}  // namespace thimble
