// A count of bytes as its own type, with the spellings people use for it ("64MiB", "6.5 MB").
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace thimble {

struct Bytes {
  int64_t count = 0;

  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t bytes) : count(bytes) {}

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, int64_t factor) { return Bytes(a.count * factor); }
};

// Every buffer in an arena starts on this boundary: a cache line, and a full AVX-512 register.
inline constexpr int64_t kArenaAlignment = 64;

constexpr Bytes align_up(Bytes bytes, int64_t alignment = kArenaAlignment) {
  return Bytes((bytes.count + alignment - 1) / alignment * alignment);
}

// Parses a positive size: digits with an optional fraction, then B, kB/MB/GB/TB (powers of 1000),
// KiB/MiB/GiB/TiB (powers of 1024), or nothing (bytes). Throws UserError on anything else.
Bytes parse_bytes(std::string_view text);

// "0 B", "812 B", "6.48 MiB": three significant figures, binary units.
std::string to_string(Bytes bytes);

}  // namespace thimble
