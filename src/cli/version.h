// `thimble --version`: which program this is, and what it can run on.
#pragma once

#include <string>

namespace thimble {

// Linked into the program alone: "4fd1c2a09be7", "-dirty" behind it; "unknown" outside git.
const char* build_commit();
std::string version_number();  // "0.1.0"
std::string version_text(const char* commit);

}  // namespace thimble
