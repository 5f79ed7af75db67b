// Axes that lie in another order than the net's: what moves bytes, and what only renames.
#include <gtest/gtest.h>

#include "import/permuted_tensor.h"

namespace thimble {
namespace {

struct Laying : testing::Test {
  Graph graph;
  Builder b{graph};

  // A tensor that the net sees as `shape`, lying in `order`.
  PermutedTensor laid(const Shape& shape, const Order& order) {
    std::vector<int64_t> dims;
    for (const int axis : order) dims.push_back(shape[axis]);
    return {b.input("x", {Shape(std::span<const int64_t>(dims))}), order};
  }
  size_t transposes() const {
    size_t count = 0;
    for (const Node& node : graph.nodes) count += node.op->name == "transpose" ? 1 : 0;
    return count;
  }
};

TEST_F(Laying, OnesMoveForNothing) {
  const PermutedTensor x = laid({4, 8, 1, 1}, {0, 2, 3, 1});
  EXPECT_EQ(b.shape(plain(b, x)), (Shape{4, 8, 1, 1}));
  EXPECT_EQ(transposes(), 0u);
  EXPECT_EQ(b.shape(plain(b, laid({4, 8, 3, 3}, {0, 2, 3, 1}))), (Shape{4, 8, 3, 3}));
  EXPECT_EQ(transposes(), 1u);
}

// A vision transformer's patches: [N,C,H,W] -> [N,C,H*W], pixels lying together.
TEST_F(Laying, PixelsThatLieTogetherAreJoinedWhereTheyLie) {
  const PermutedTensor y = reshape_permuted(b, laid({2, 16, 3, 5}, {0, 2, 3, 1}), {2, 16, 15});
  EXPECT_EQ(transposes(), 0u);
  EXPECT_EQ(y.order, (Order{0, 2, 1}));
  EXPECT_EQ(b.shape(y.value), (Shape{2, 15, 16}));
  EXPECT_EQ(shape_of(b, y), (Shape{2, 16, 15}));
}

// A classifier's flatten: channels and pixels do not lie in the order in which they are joined.
TEST_F(Laying, WhatDoesNotLieTogetherIsPutInOrderFirst) {
  const PermutedTensor y = reshape_permuted(b, laid({2, 16, 3, 5}, {0, 2, 3, 1}), {2, 240});
  EXPECT_EQ(transposes(), 1u);
  EXPECT_EQ(y.order, (Order{0, 1}));
  EXPECT_EQ(b.shape(y.value), (Shape{2, 240}));
}

// Heads: [N,T,C] -> [N,T,h,d] and back, from any order.
TEST_F(Laying, AxesAreSplitWhereTheyLie) {
  const PermutedTensor y = reshape_permuted(b, laid({2, 7, 12}, {1, 0, 2}), {2, 7, 3, 4});
  EXPECT_EQ(transposes(), 0u);
  EXPECT_EQ(y.order, (Order{1, 0, 2, 3}));
  EXPECT_EQ(b.shape(y.value), (Shape{7, 2, 3, 4}));
  const PermutedTensor z = reshape_permuted(b, y, {2, 7, 12});
  EXPECT_EQ(transposes(), 0u);
  EXPECT_EQ(b.shape(z.value), (Shape{7, 2, 12}));
}

TEST_F(Laying, AnotherNumberOfElementsIsRefused) {
  EXPECT_THROW(reshape_permuted(b, laid({2, 16}, {0, 1}), {2, 15}), UserError);
}

}  // namespace
}  // namespace thimble
