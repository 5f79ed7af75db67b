// UTF-8, read strictly: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Bytes that some programs write in front of a text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The first byte that is no UTF-8, counted from 0; empty: all are.
std::optional<size_t> find_malformed(std::string_view text);

// Advice on a file that is no UTF-8, by its first bytes: "unpack it (`gunzip`)".
std::string_view how_to_read(std::string_view begin);

// REQUIRES: the text is UTF-8.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);
void append_utf8(std::string& text, char32_t c);
// Its characters, each a piece of the text.
std::vector<std::string_view> characters_of(std::string_view text);

// In lower case, as Python's str.lower() has it: a capital sigma that ends a word becomes a final
// one.
std::string lower_case(std::string_view text);

// The pieces between single spaces, empty ones left out.
std::vector<std::string_view> split_spaces(std::string_view text);
// The pieces between any white space.
std::vector<std::string_view> split_white(std::string_view text);

// Calls `line` with every line of the file and its number, from 1 on: without its end, be that \n
// or \r\n, or missing at the end of the file, and without a byte order mark. The file may be of any
// size. UserError, naming file and line, where it is no UTF-8, has a null character, or a line of
// more than 1 MiB.
void for_each_line(const std::string& path,
                   const std::function<void(int64_t number, std::string_view text)>& line);
// All of them.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace thimble
