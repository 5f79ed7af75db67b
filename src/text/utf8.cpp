#include "text/utf8.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/io/file.h"
#include "text/characters.h"

namespace thimble {
namespace {

constexpr size_t kMostLine = 1 << 20;
constexpr char32_t kCapitalSigma = 0x3a3, kSigma = 0x3c3, kFinalSigma = 0x3c2;
constexpr char32_t kDottedCapitalI = 0x130;

// How long the character is that begins at `at`, and which it is; 0: it is none.
size_t decode_at(std::string_view text, size_t at, char32_t& c) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    c = first;
    return 1;
  }
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > text.size()) return 0;
  char32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  c = code;
  return size;
}

// Whether Unicode's rule of the final sigma holds at `at`: a letter that has cases before, none behind.
// Marks between do not count.
bool ends_a_word(std::u32string_view text, size_t at) {
  size_t before = at, behind = at + 1;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  while (behind < text.size() && is_case_ignorable(text[behind])) ++behind;
  return behind == text.size() || !is_cased(text[behind]);
}

class LineReader {
 public:
  explicit LineReader(const std::string& path) : file_(path) {}

  // False: there are no more.
  bool next(std::string_view& line) {
    size_t end = 0;
    while ((end = buffer_.find('\n', begin_)) == std::string::npos) {
      if (read_ == file_.size()) break;
      fill();
    }
    if (end == std::string::npos && begin_ == buffer_.size()) return false;
    ++number_;
    line = std::string_view(buffer_).substr(begin_, end == std::string::npos ? end : end - begin_);
    begin_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    check(line);
    return true;
  }
  int64_t number() const { return number_; }

 private:
  void fill() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    user_check(buffer_.size() <= kMostLine,
               "'{}' has a line of more than {} bytes, line {}; break it up", file_.path(),
               kMostLine, number_ + 1);
    const size_t old = buffer_.size();
    const auto more = static_cast<size_t>(std::min<int64_t>(65536, file_.size() - read_));
    buffer_.resize(old + more);
    file_.read_at(read_, std::as_writable_bytes(std::span(buffer_).subspan(old)));
    read_ += static_cast<int64_t>(more);
  }

  void check(std::string_view line) const {
    if (const auto bad = find_malformed(line)) {
      std::string begin(static_cast<size_t>(std::min<int64_t>(8, file_.size())), '\0');
      file_.read_at(0, std::as_writable_bytes(std::span(begin)));
      user_error("'{}' is not UTF-8: line {}, byte {}; {}", file_.path(), number_, *bad + 1,
                 how_to_read(begin));
    }
    user_check(line.find('\0') == std::string_view::npos,
               "'{}' has a null character in line {}: it is no text file", file_.path(), number_);
  }

  const ReadFile file_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next line in the buffer
  int64_t read_ = 0;  // of the file
  int64_t number_ = 0;
};

}  // namespace

std::optional<size_t> find_malformed(std::string_view text) {
  char32_t c = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = decode_at(text, at, c);
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

std::string_view how_to_read(std::string_view begin) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"\x1f\x8b", "it is packed: unpack it (`gunzip`)"},
      {"\xfd"
       "7zXZ",
       "it is packed: unpack it (`unxz`)"},
      {"\x28\xb5\x2f\xfd", "it is packed: unpack it (`unzstd`)"},
      {"BZh", "it is packed: unpack it (`bunzip2`)"},
      {"PK\x03\x04", "it is packed: unpack it (`unzip`)"},
      {"\xff\xfe", "convert it (`iconv -f UTF-16 -t UTF-8`)"},
      {"\xfe\xff", "convert it (`iconv -f UTF-16 -t UTF-8`)"},
  };
  for (const auto& [mark, what] : kKinds) {
    if (begin.starts_with(mark)) return what;
  }
  return "convert it (`iconv -t UTF-8`)";
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  char32_t c = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = decode_at(text, at, c);
    internal_check(size > 0, "text that should have been checked is no UTF-8");
    result.push_back(c);
    at += size;
  }
  return result;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

std::string encode_utf8(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : text) append_utf8(result, c);
  return result;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> all;
  char32_t c = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = decode_at(text, at, c);
    internal_check(size > 0, "text that should have been checked is no UTF-8");
    all.push_back(text.substr(at, size));
    at += size;
  }
  return all;
}

std::string lower_case(std::string_view text) {
  const std::u32string from = decode_utf8(text);
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == kCapitalSigma) {
      append_utf8(result, ends_a_word(from, i) ? kFinalSigma : kSigma);
    } else if (from[i] == kDottedCapitalI) {
      result += "i\xcc\x87";
    } else {
      append_utf8(result, to_lower(from[i]));
    }
  }
  return result;
}

std::vector<std::string_view> split_spaces(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<std::string_view> split_white(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  char32_t c = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size = decode_at(text, at, c);
    internal_check(size > 0, "text that should have been checked is no UTF-8");
    if (is_space(c)) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + size;
    }
    at += size;
  }
  if (text.size() > begin) words.push_back(text.substr(begin));
  return words;
}

void for_each_line(const std::string& path,
                   const std::function<void(int64_t number, std::string_view text)>& line) {
  LineReader reader(path);
  for (std::string_view text; reader.next(text);) line(reader.number(), text);
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  for_each_line(path, [&](int64_t, std::string_view text) { lines.emplace_back(text); });
  return lines;
}

}  // namespace thimble
