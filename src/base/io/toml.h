// TOML that anyone may have written, bounded in size and depth before a table is made of it.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "base/number/bytes.h"

namespace thimble {

inline constexpr Bytes kLargestTomlFile = Bytes(1 << 20);
// Dots outside of texts and comments, in all: each can make a table inside of another.
inline constexpr int kMostTomlDots = 1000;

// The table in a file; UserError naming file and line where it is no TOML. `what` says what the
// file is to be: "recipe".
toml::table read_toml(const std::string& path, std::string_view what);
// The same of a text; `name` stands in messages where a file's path would.
toml::table parse_toml(const std::string& text, const std::string& name, std::string_view what);

}  // namespace thimble
