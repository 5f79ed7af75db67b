#include "data/order/augment.h"

#include <algorithm>

#include "base/error.h"
#include "base/number/philox.h"

namespace thimble {
namespace {

// Uniform in [0, n) up to a bias of n / 2^32.
int64_t draw_below(int64_t n, uint32_t word) {
  return static_cast<int64_t>((static_cast<uint64_t>(n) * word) >> 32);
}

// The source coordinate behind a padded one; -1 for a black pixel.
int64_t source(int64_t at, int64_t extent, Padding padding) {
  if (at >= 0 && at < extent) return at;
  if (padding == Padding::zero) return -1;
  return at < 0 ? -at : 2 * (extent - 1) - at;
}

}  // namespace

CropFlipDraw draw_crop_flip(const CropFlip& recipe, uint64_t seed, uint64_t epoch, int64_t index) {
  const auto record = static_cast<uint64_t>(index);
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(record), static_cast<uint32_t>(record >> 32),
              static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32)},
             philox_key(seed ^ stable_hash("crop_flip")));
  return {draw_below(2 * recipe.pad + 1, words[0]), draw_below(2 * recipe.pad + 1, words[1]),
          recipe.flip && (words[2] >> 31) != 0};
}

void random_crop_flip(std::span<const uint8_t> in, std::span<uint8_t> out, const Shape& image_hwc,
                      const CropFlip& recipe, uint64_t seed, uint64_t epoch, int64_t index) {
  internal_check(std::ssize(in) == image_hwc.elements() && in.size() == out.size(),
                 "random_crop_flip: wrong image size");
  const int64_t height = image_hwc[0], width = image_hwc[1], channels = image_hwc[2];
  user_check(
      recipe.pad >= 0 && (recipe.padding == Padding::zero || recipe.pad < std::min(height, width)),
      "images of {}x{} cannot be padded by {} with reflection; use less padding", height, width,
      recipe.pad);
  const CropFlipDraw draw = draw_crop_flip(recipe, seed, epoch, index);
  uint8_t* to = out.data();
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = source(y + draw.top - recipe.pad, height, recipe.padding);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t across = draw.mirrored ? width - 1 - x : x;
      const int64_t column = source(across + draw.left - recipe.pad, width, recipe.padding);
      if (row < 0 || column < 0) {
        to = std::fill_n(to, channels, uint8_t{0});
      } else {
        to = std::copy_n(in.data() + (row * width + column) * channels, channels, to);
      }
    }
  }
}

}  // namespace thimble
