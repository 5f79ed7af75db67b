// JSON that anyone may have written, and JSON that anyone may read.
//
// A file may be as large and as deep as its author liked. Both are bounded before
// a value is made of it, since copying, comparing and printing walk down a value by recursion.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/number/bytes.h"

namespace thimble {

inline constexpr int kDeepestJson = 100;
inline constexpr Bytes kLargestJsonFile = Bytes(64 << 20);

// UserError, saying what is wrong with the text and no more, where it is not JSON, too deep, or
// has a key twice.
nlohmann::json parse_json(std::string_view text);

// The JSON in a file; UserError naming the file where it cannot be read, has more than `most` bytes
// or is no JSON. `what` says what it should be: "a plan file".
nlohmann::json read_json(const std::string& path, std::string_view what,
                         Bytes most = kLargestJsonFile);

// The fault of a value (a missing key, another kind) in words, without the name that the library
// gives it.
std::string why_refused(const nlohmann::json::exception& error);

// `json` as text, on one line or indented. Never throws for what it holds: bytes that are no UTF-8
// (a path or a pattern that was typed) are replaced.
std::string json_text(const nlohmann::json& json, int indent = -1);

}  // namespace thimble
