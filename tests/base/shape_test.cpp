#include "base/number/shape.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).elements(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).product(1, 3), 12);
  EXPECT_EQ((Shape{2, 3, 4}).product(1, 1), 1);
  EXPECT_EQ((Shape{2, 3, 4}).back(), 4);
  EXPECT_EQ((Shape{2, 3, 4}).back(3), 2);
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).elements(), int64_t{1} << 40);
}

TEST(Shape, ComparesByExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE(Shape{}, Shape{0});
}

TEST(Shape, RefusesTooManyAxesAndNegativeExtents) {
  EXPECT_NO_THROW((Shape{1, 1, 1, 1, 1, 1}));
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), UserError);
  EXPECT_THROW((Shape{2, -1}), UserError);
}

TEST(Shape, RefusesWhatNoMemoryHolds) {
  EXPECT_EQ((Shape{int64_t{1} << 40}).elements(), int64_t{1} << 40);
  EXPECT_THROW((Shape{(int64_t{1} << 40) + 1}), UserError);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}), UserError);
  EXPECT_THROW((Shape{0, int64_t{1} << 40, int64_t{1} << 40}),
               UserError);  // parts are multiplied, too
}

TEST(Shape, Prints) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{100, 32, 32, 16}), "[100,32,32,16]");
  EXPECT_EQ(to_string(TensorType{{2, 3}, DType::bf16}), "bf16[2,3]");
}

TEST(TensorType, HasBytes) {
  EXPECT_EQ((TensorType{{2, 3}, DType::f32}).bytes(), Bytes(24));
  EXPECT_EQ((TensorType{{2, 3}, DType::u8}).bytes(), Bytes(6));
  EXPECT_EQ((TensorType{{}, DType::f64}).bytes(), Bytes(8));
  EXPECT_EQ((TensorType{{2, 0}, DType::f64}).bytes(), Bytes(0));
}

TEST(Broadcast, FollowsNumpy) {
  EXPECT_EQ(broadcast({2, 3}, {2, 3}, "x"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 3}, {3}, "x"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({3}, {2, 3}, "x"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}, "x"), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {5}, "x"), (Shape{5}));
  EXPECT_EQ(broadcast({}, {}, "x"), Shape{});
  EXPECT_EQ(broadcast({0}, {1}, "x"), Shape{0});
}

TEST(Broadcast, NamesTheOpInItsError) {
  EXPECT_THROW(broadcast({2, 3}, {2}, "x"), UserError);
  EXPECT_THROW(broadcast({0}, {3}, "x"), UserError);
  try {
    broadcast({2, 3}, {4}, "add");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "[add] shapes [2,3] and [4] do not broadcast");
  }
}

}  // namespace
}  // namespace thimble
