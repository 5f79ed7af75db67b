#include "data/format/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kLongestName = 1 << 16;

using Block = std::array<char, kBlock>;

std::string_view text_in(const Block& block, size_t begin, size_t size) {
  const std::string_view whole(block.data() + begin, size);
  return whole.substr(0, whole.find('\0'));
}

// Octal digits, or, of what does not fit, the bytes of a number. -1: neither.
int64_t number_in(const Block& block, size_t begin, size_t size) {
  if ((static_cast<unsigned char>(block[begin]) & 0x80) != 0) {
    int64_t number = block[begin] & 0x7f;
    for (size_t i = 1; i < size; ++i) {
      if (number > (INT64_MAX >> 8)) return -1;
      number = number << 8 | static_cast<unsigned char>(block[begin + i]);
    }
    return number;
  }
  std::string_view digits = text_in(block, begin, size);
  const auto is_space = [](char c) { return c == ' '; };
  while (!digits.empty() && is_space(digits.front())) digits.remove_prefix(1);
  while (!digits.empty() && is_space(digits.back())) digits.remove_suffix(1);
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 8);
  return error == std::errc() && end == digits.data() + digits.size() && number >= 0 ? number : -1;
}

bool is_sound(const Block& block) {
  int64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum == number_in(block, 148, 8);
}

// The name that a record of pax has for the file behind it; empty: none.
std::string path_in_pax(std::string_view records) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length <= digits + 1 || length > records.size()) return "";
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    if (record.starts_with("path=")) return std::string(record.substr(5));
    records.remove_prefix(length);
  }
  return "";
}

}  // namespace

void for_each_in_tar(const ReadFile& archive, const std::function<void(const TarEntry&)>& each) {
  std::string long_name;
  for (int64_t at = 0; at + kBlock <= archive.size();) {
    Block block;
    archive.read_at(at, std::as_writable_bytes(std::span(block)));
    if (std::ranges::all_of(block, [](char c) { return c == 0; })) return;
    const int64_t size = number_in(block, 124, 12);
    user_check(is_sound(block) && size >= 0,
               "'{}' is no tar archive, or is damaged at byte {}; unpack compressed ones, and get "
               "a fresh copy of others",
               archive.path(), at);
    const int64_t begin = at + kBlock;
    user_check(size <= archive.size() - begin,
               "the archive '{}' is truncated: '{}' at byte {} has {} bytes, and {} are left; get "
               "a fresh copy of it",
               archive.path(), text_in(block, 0, 100), at, size, archive.size() - begin);
    const char kind = block[156];
    if (kind == 'L' || kind == 'x') {  // the name of what follows, of GNU and of pax
      user_check(size <= kLongestName, "the archive '{}' has a name of {} bytes at byte {}",
                 archive.path(), size, at);
      std::string text(static_cast<size_t>(size), '\0');
      archive.read_at(begin, std::as_writable_bytes(std::span(text)));
      const std::string name = kind == 'x' ? path_in_pax(text) : text.substr(0, text.find('\0'));
      if (!name.empty()) long_name = name;
    } else {
      const bool ustar = std::string_view(block.data() + 257, 5) == "ustar";
      std::string name(text_in(block, 0, 100));
      const std::string_view prefix = ustar ? text_in(block, 345, 155) : "";
      if (!prefix.empty()) name = fmt::format("{}/{}", prefix, name);
      if (!long_name.empty()) name = long_name;
      long_name.clear();
      if (kind == '0' || kind == '\0' || kind == '7') each({name, begin, size});
    }
    at = begin + (size + kBlock - 1) / kBlock * kBlock;
  }
}

}  // namespace thimble
