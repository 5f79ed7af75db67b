#include "data/order/augment.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace thimble {
namespace {

// Pads in full, then cuts and mirrors: the obvious way.
std::vector<uint8_t> by_hand(const std::vector<uint8_t>& in, const Shape& image,
                             const CropFlip& recipe, const CropFlipDraw& draw) {
  const int64_t height = image[0], width = image[1], channels = image[2], pad = recipe.pad;
  const int64_t wide = width + 2 * pad, tall = height + 2 * pad;
  std::vector<uint8_t> padded(static_cast<size_t>(wide * tall * channels));
  const auto mirror = [](int64_t at, int64_t extent) {
    while (at < 0 || at >= extent) at = at < 0 ? -at : 2 * extent - 2 - at;
    return at;
  };
  for (int64_t y = 0; y < tall; ++y) {
    for (int64_t x = 0; x < wide; ++x) {
      const bool inside = y >= pad && y < pad + height && x >= pad && x < pad + width;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from =
            (mirror(y - pad, height) * width + mirror(x - pad, width)) * channels + c;
        padded[static_cast<size_t>((y * wide + x) * channels + c)] =
            inside || recipe.padding == Padding::reflect ? in[static_cast<size_t>(from)] : 0;
      }
    }
  }
  std::vector<uint8_t> out;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t column = draw.left + (draw.mirrored ? width - 1 - x : x);
      for (int64_t c = 0; c < channels; ++c) {
        out.push_back(padded[static_cast<size_t>(((y + draw.top) * wide + column) * channels + c)]);
      }
    }
  }
  return out;
}

TEST(CropFlip, MatchesTheObviousWay) {
  for (const Shape& image : {Shape{8, 6, 3}, Shape{5, 9, 1}}) {
    std::vector<uint8_t> in(static_cast<size_t>(image.elements()));
    std::iota(in.begin(), in.end(), uint8_t{1});
    for (const Padding padding : {Padding::zero, Padding::reflect}) {
      for (const int64_t pad : {0, 1, 4}) {
        for (const bool flip : {false, true}) {
          const CropFlip recipe{pad, flip, padding};
          for (int64_t index = 0; index < 100; ++index) {
            std::vector<uint8_t> out(in.size());
            random_crop_flip(in, out, image, recipe, 1, 2, index);
            ASSERT_EQ(out, by_hand(in, image, recipe, draw_crop_flip(recipe, 1, 2, index)));
          }
        }
      }
    }
  }
}

TEST(CropFlip, DrawsEveryPlaceAboutEquallyOften) {
  const CropFlip recipe{};
  std::map<std::pair<int64_t, int64_t>, int> places;
  int mirrored = 0;
  constexpr int kDraws = 81'000;
  for (int64_t index = 0; index < kDraws; ++index) {
    const CropFlipDraw draw = draw_crop_flip(recipe, 3, 0, index);
    ++places[{draw.top, draw.left}];
    mirrored += draw.mirrored;
  }
  EXPECT_EQ(places.size(), 81u);
  // Each of 81 places is expected 1,000 times with a deviation of 31.4; five are allowed.
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 1000, 160);
  EXPECT_NEAR(mirrored, kDraws / 2, 720);  // deviation 142
  EXPECT_EQ(places.rbegin()->first, (std::pair<int64_t, int64_t>{8, 8}));
}

TEST(CropFlip, DependsOnSeedEpochAndIndexAlone) {
  const CropFlip recipe{};
  const auto agree = [&](uint64_t seed, uint64_t epoch, int64_t shift) {
    int same = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      const CropFlipDraw a = draw_crop_flip(recipe, 1, 1, i);
      const CropFlipDraw b = draw_crop_flip(recipe, seed, epoch, i + shift);
      same += a.top == b.top && a.left == b.left && a.mirrored == b.mirrored;
    }
    return same;
  };
  EXPECT_EQ(agree(1, 1, 0), 1000);
  EXPECT_LT(agree(2, 1, 0), 50);  // one in 162 by chance
  EXPECT_LT(agree(1, 2, 0), 50);
  EXPECT_LT(agree(1, 1, 1), 50);
}

TEST(CropFlip, RefusesToReflectPastTheImage) {
  std::vector<uint8_t> in(4 * 4), out(4 * 4);
  EXPECT_THROW(random_crop_flip(in, out, Shape{4, 4, 1}, CropFlip{}, 0, 0, 0), UserError);
  EXPECT_NO_THROW(
      random_crop_flip(in, out, Shape{4, 4, 1}, CropFlip{.padding = Padding::zero}, 0, 0, 0));
}

}  // namespace
}  // namespace thimble
