// Into how many parts products are cut: few results with long sums, as many as keep the device busy
// and little room holds, and nothing else.
#include "backend/cuda/multiply/product_cut.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

constexpr int64_t kMultiprocessors = 132;

ProductCut cut(int64_t m, int64_t n, int64_t k, DType dtype = DType::f32) {
  return product_cut(m, n, k, dtype, kMultiprocessors);
}

TEST(ProductCut, LeavesWholeWhatKeepsTheDeviceBusy) {
  // Gradients of GPT-2's and ViT-B's weights.
  for (const int64_t columns : {768, 2304, 3072}) {
    EXPECT_EQ(cut(768, columns, 8192, DType::bf16).parts, 1);
    EXPECT_EQ(cut(columns, 768, 12608).parts, 1);
  }
  EXPECT_EQ(cut(4000, 256, 512).parts, 1) << "forward";
  EXPECT_EQ(cut(256, 512, 1023).parts, 1) << "short sums";
  EXPECT_EQ(cut(0, 512, 4000).parts, 1);
}

TEST(ProductCut, CutsLongSumsOfFewResults) {
  const ProductCut f32 = cut(256, 512, 4000);
  EXPECT_EQ(f32.parts, 10);  // of at most 11, the most that leave nothing over
  EXPECT_EQ(f32.depth, 400);
  EXPECT_EQ(f32.rest, 0);
  const ProductCut bf16 = cut(256, 512, 4000, DType::bf16);
  EXPECT_EQ(bf16.parts, 5);  // sums are f32, whatever the factors are
  EXPECT_EQ(bf16.depth, 800);
}

TEST(ProductCut, PutsWhatIsLeftOverIntoAPieceOfItsOwn) {
  const ProductCut odd = cut(256, 512, 4001);
  EXPECT_EQ(odd.parts, 10);
  EXPECT_EQ(odd.depth, 400);
  EXPECT_EQ(odd.rest, 1);
  EXPECT_EQ(odd.pieces(), 11);
}

// Every product of a range: all of the depth, parts aligned, sums no more than half the factors.
TEST(ProductCut, CoversTheDepthAndKeepsToItsRoom) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int64_t m : {1, 7, 124, 256, 1000}) {
      for (const int64_t n : {1, 10, 248, 512, 2048}) {
        for (int64_t k = 1000; k < 70000; k = k * 5 / 4 + 1) {
          const ProductCut c = cut(m, n, k, dtype);
          ASSERT_EQ(c.parts * c.depth + c.rest, k);
          if (c.parts == 1) continue;
          ASSERT_EQ(c.depth % 8, 0);
          ASSERT_GE(c.depth, 256);
          ASSERT_LT(c.rest, c.depth);
          ASSERT_LE(2 * 4 * c.pieces() * m * n, (m + n) * k * size_of(dtype));
          ASSERT_LE(c.parts, 32);
        }
      }
    }
  }
}

}  // namespace
}  // namespace thimble
