// Pictures in files: JPEG and PNG, decoded and brought to the size that a model reads. The same
// bytes give the same pixels, on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/number/shape.h"

namespace thimble {

// Rows of pixels, channels innermost.
struct Picture {
  int64_t height = 0, width = 0, channels = 3;
  std::vector<uint8_t> pixels;
};

// Whether the name ends as those of pictures do: .jpg, .jpeg, .png, large or small.
bool is_picture(std::string_view name);

// Decodes a whole file, to grey where `channels` is 1. Of a JPEG that is much larger than
// `at_least` on both sides a smaller version, no smaller than that, is decoded. Keeps the picture's
// memory for the next one. UserError, with `name` in it, where it is damaged, truncated, neither of
// both, or larger than kMostPixels.
void decode_picture(std::span<const std::byte> file, const std::string& name, int64_t channels,
                    int64_t at_least, Picture& out);

inline constexpr int64_t kMostPixels = int64_t{1} << 27;

// The middle of the picture, as much of it as has the shape of image_hwc, brought to its size: each
// pixel is the weighed mean of those it covers. Whole-number arithmetic.
// REQUIRES: the picture has as many channels; out.size() == image_hwc.elements().
void resize_and_crop(const Picture& picture, const Shape& image_hwc, std::span<uint8_t> out);

}  // namespace thimble
