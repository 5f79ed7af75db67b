// The sha256 of a file's bytes.
#pragma once

#include <string>

namespace thimble {

// UserError where it cannot be read.
std::string file_sha256(const std::string& path);

}  // namespace thimble
