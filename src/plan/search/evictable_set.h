// A small set of evictable values (see plan/search/step_memory_model.h), as bits.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace thimble {

template <size_t Words>
struct EvictableSet {
  std::array<uint64_t, Words> words{};

  bool has(int u) const { return ((words[word(u)] >> bit(u)) & 1u) != 0; }
  void add(int u) { words[word(u)] |= uint64_t{1} << bit(u); }
  void remove(int u) { words[word(u)] &= ~(uint64_t{1} << bit(u)); }
  void remove(const EvictableSet& other) {
    for (size_t w = 0; w < Words; ++w) words[w] &= ~other.words[w];
  }
  void keep(const EvictableSet& other) {
    for (size_t w = 0; w < Words; ++w) words[w] &= other.words[w];
  }
  bool contains(const EvictableSet& other) const {
    for (size_t w = 0; w < Words; ++w) {
      if ((other.words[w] & ~words[w]) != 0) return false;
    }
    return true;
  }
  // The highest number in the set; -1: it is empty.
  int last() const {
    for (size_t w = Words; w-- > 0;) {
      if (words[w] != 0) return static_cast<int>(w * 64) + 63 - std::countl_zero(words[w]);
    }
    return -1;
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (size_t w = 0; w < Words; ++w) {
      for (uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
        visit(static_cast<int>(w * 64) + std::countr_zero(rest));
      }
    }
  }
  auto operator<=>(const EvictableSet&) const = default;

 private:
  static size_t word(int u) { return static_cast<size_t>(u) / 64; }
  static int bit(int u) { return u % 64; }
};

}  // namespace thimble
