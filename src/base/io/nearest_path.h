// A path that was meant where there is nothing: the entry of its folder with nearly that name.
#pragma once

#include <string>

namespace thimble {

// The path with each missing part replaced by the nearest name beside it. Empty: the path is there, or
// nothing is near.
std::string nearest_path(const std::string& path);

// The end of a sentence about a missing path: "; the nearest is 'recipes/digits.toml'". Empty: none.
std::string nearest_path_clause(const std::string& path);

}  // namespace thimble
