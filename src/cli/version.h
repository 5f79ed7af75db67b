// `thimble --version`: which program this is, and what it can run on.
#pragma once

#include <string>

namespace thimble {

// Linked into the program alone: "4fd1c2a09be7", "-dirty" behind it; "unknown" outside git.
const char* build_commit();
std::string version_number();  // "0.1.0"
// The same in lines, with what its two hashes are of.
std::string version_text(const std::string& commit);

}  // namespace thimble
