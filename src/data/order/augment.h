// Random crops and mirror images, the usual augmentation for small pictures. The draw depends on
// (seed, epoch, index) alone: the same run makes the same pictures, in any order, on any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/number/shape.h"

namespace thimble {

enum class Padding : uint8_t {
  zero,     // black
  reflect,  // mirrored at the border pixel, which is not repeated: 2 1 | 0 1 2
};

struct CropFlip {
  int64_t pad = 4;   // the crop has the image's size, out of the image padded by this much
  bool flip = true;  // mirror left to right, half of the time
  Padding padding = Padding::reflect;
};

// The draw: the crop's corner in the padded image, and whether it is mirrored.
struct CropFlipDraw {
  int64_t top = 0, left = 0;  // in [0, 2 * pad]
  bool mirrored = false;
};

CropFlipDraw draw_crop_flip(const CropFlip& recipe, uint64_t seed, uint64_t epoch, int64_t index);

// REQUIRES: `in` and `out` are distinct and have image_hwc.elements() bytes. Throws UserError when
// reflection reaches past the image (pad >= height or width). Allocates nothing.
void random_crop_flip(std::span<const uint8_t> in, std::span<uint8_t> out, const Shape& image_hwc,
                      const CropFlip& recipe, uint64_t seed, uint64_t epoch, int64_t index);

}  // namespace thimble
