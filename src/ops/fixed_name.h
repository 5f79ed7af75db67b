// A name as a template's argument: what functions without state, as an OpDef holds them, know of
// the op that they belong to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace thimble {

template <size_t kSize>
struct FixedName {
  char text[kSize] = {};

  constexpr FixedName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }  // NOLINT
  constexpr std::string_view view() const { return {text, kSize - 1}; }
};

}  // namespace thimble
