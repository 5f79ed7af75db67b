#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace thimble {
namespace {

// Bytes of the UTF-8 character at the front; 0: there is none.
size_t character_at(std::string_view text, uint32_t& code) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    code = byte(0);
    return 1;
  }
  const size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return 0;
  code = byte(0) & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[size] || code > 0x10ffff || surrogate ? 0 : size;
}

// The replacement of a control character. Empty: it is none.
std::string escaped(uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      if (code < 0x20) return fmt::format("\\x{:02x}", code);
      if (code >= 0x7f && code < 0xa0) return fmt::format("\\u{:04x}", code);
      return "";
  }
}

// stays(at): whether the line break at that place does.
template <class Stays>
std::string without_control(std::string_view text, const Stays& stays) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t size = character_at(text.substr(at), code);
    if (size == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[at]));
      ++at;
      continue;
    }
    const std::string other = code == '\n' && stays(at) ? "" : escaped(code);
    out += other.empty() ? text.substr(at, size) : other;
    at += size;
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return without_control(text, [](size_t) { return false; });
}

std::string printable_lines(std::string_view text) {
  return without_control(text, [](size_t) { return true; });
}

std::string printable_message(std::string_view text) {
  return without_control(text, [&](size_t at) { return text.substr(at + 1).starts_with("  "); });
}

}  // namespace thimble
