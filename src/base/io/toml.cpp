#include "base/io/toml.h"

#include <algorithm>

#include "base/error.h"
#include "base/io/file.h"

namespace thimble {
namespace {

// Where the text or comment that begins at `at` ends: the place of its last character. An unclosed one
// extends to the end of its line or file, and the parser refuses it.
size_t end_of_opaque(std::string_view text, size_t at) {
  const char quote = text[at];
  if (quote == '#') return std::min(text.find('\n', at), text.size() - 1);
  const bool long_text = text.substr(at, 3) == std::string(3, quote);
  const std::string closing(long_text ? 3 : 1, quote);
  for (size_t i = at + closing.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == '\n' && !long_text) {
      return i;
    } else if (text.substr(i, closing.size()) == closing) {
      i += closing.size() - 1;
      // Up to two quotes more belong to a long text.
      for (int more = 0; long_text && more < 2 && text.substr(i + 1, 1) == closing.substr(2);
           ++more) {
        ++i;
      }
      return i;
    }
  }
  return text.size() - 1;
}

int count_dots(std::string_view text) {
  int dots = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' || c == '\'' || c == '#') {
      at = end_of_opaque(text, at);
    } else if (c == '.') {
      ++dots;
    }
  }
  return dots;
}

}  // namespace

toml::table read_toml(const std::string& path, std::string_view what) {
  return parse_toml(read_text(path, fmt::format("a {}", what), kLargestTomlFile), path, what);
}

toml::table parse_toml(const std::string& text, const std::string& path, std::string_view what) {
  user_check(std::ssize(text) <= kLargestTomlFile.count, "{} '{}' has {} bytes; {} are the most",
             what, path, text.size(), kLargestTomlFile.count);
  user_check(count_dots(text) <= kMostTomlDots,
             "{} '{}' has more than {} dots in its keys and numbers; write keys without dots", what,
             path, kMostTomlDots);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    user_error("{} '{}', line {}: {}", what, path, error.source().begin.line, error.description());
  }
}

}  // namespace thimble
