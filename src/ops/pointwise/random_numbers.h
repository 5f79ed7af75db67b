// The numbers of `random`, for the kernels of every backend: those of a block of four words.
#pragma once

#include <cmath>
#include <string_view>

#include "base/number/random_stream.h"

namespace thimble {

enum class Draw : uint8_t { uniform, normal, exponential };

// Which draw a name is of. False: of none.
inline bool parse_draw(std::string_view name, Draw* draw) {
  if (name == "uniform") return *draw = Draw::uniform, true;
  if (name == "normal") return *draw = Draw::normal, true;
  if (name == "exponential") return *draw = Draw::exponential, true;
  return false;
}

// Between 0 and 1 and neither, so that logarithms are there and none of them is 0: 24 bits, of
// which the last is set.
constexpr float share_from(uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * 0x1p-23f;
}

// Four independent numbers from four words. They are uniform in [0, 1), normal with mean 0 and
// deviation 1 (two from two words, Box and Muller 1958), or exponential with mean 1.
constexpr void draw_numbers(Draw draw, const PhiloxCounter& words, float (&numbers)[4]) {
  if (draw == Draw::normal) {
    for (size_t k = 0; k < 4; k += 2) {
      const float radius = std::sqrt(-2.0f * std::log(share_from(words[k])));
      const float angle = 6.283185307179586f * uniform_from(words[k + 1]);
      numbers[k] = radius * std::cos(angle);
      numbers[k + 1] = radius * std::sin(angle);
    }
    return;
  }
  for (size_t k = 0; k < 4; ++k) {
    numbers[k] = draw == Draw::uniform ? uniform_from(words[k]) : -std::log(share_from(words[k]));
  }
}

}  // namespace thimble
