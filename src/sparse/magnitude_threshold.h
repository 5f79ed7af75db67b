// The smallest numbers of many, without sorting or memory: where to cut.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace thimble {

// Says, number by number in the order of counting, which ones are among the smallest. Of those that
// equal the last of them, the first are.
class MagnitudeThreshold {
 public:
  // The `wanted` of `count` numbers of least magnitude; number(i) gives them.
  template <class Number>
  MagnitudeThreshold(int64_t wanted, int64_t count, const Number& number) : ties_(wanted) {
    if (wanted == 0) return;
    // Bits of a float order magnitudes. Eleven, ten and ten of them narrow the cut down.
    uint32_t known = 0;  // of the bits
    for (const int shift : {20, 10, 0}) {
      std::array<int64_t, 2048> count_of{};
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = bits_of(number(i));
        if ((bits & known) == cut_) ++count_of[(bits >> shift) & (shift == 20 ? 2047u : 1023u)];
      }
      size_t digit = 0;
      while (ties_ > count_of[digit]) ties_ -= count_of[digit++];
      cut_ |= static_cast<uint32_t>(digit) << shift;
      known = ~((1u << shift) - 1);
    }
  }

  // REQUIRES: asked about the numbers in order.
  bool takes(float number) {
    const uint32_t bits = bits_of(number);
    return bits < cut_ || (bits == cut_ && ties_-- > 0);
  }

 private:
  static uint32_t bits_of(float number) { return std::bit_cast<uint32_t>(std::abs(number)); }

  uint32_t cut_ = 0;
  int64_t ties_;  // of those that equal the cut, how many are taken
};

}  // namespace thimble
