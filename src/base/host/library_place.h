// Where libraries that are loaded on demand lie: beside the program, or beside the library that
// holds the code that asks.
#pragma once

#include <filesystem>
#include <string>

namespace thimble {

// The folder of the file that holds this function: a program or a library.
std::filesystem::path own_folder();

// NAME in `.`, `lib` or `../lib` of that folder, the first that there is; empty: none.
std::filesystem::path find_beside(const std::string& name);

}  // namespace thimble
