// Places along the last axis, by hand: the order of sums, the last of several, places that are none.
#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor numbers(Shape shape, std::vector<double> values, DType dtype = DType::f32) {
  return {{shape, dtype}, std::move(values)};
}
TestTensor places(Shape shape, std::vector<double> values) {
  return numbers(shape, std::move(values), DType::i32);
}

TEST(TakeAlong, TakesOfEachRowAndZeroWhereThereIsNone) {
  const auto y = reference_call("take_along", {numbers({2, 3}, {1, 2, 3, 4, 5, 6}),
                                               places({2, 4}, {2, 2, 0, 1, -1, 0, 3, 1})})[0];
  EXPECT_EQ(y, (std::vector<double>{3, 3, 1, 2, 0, 4, 0, 5}));
}

TEST(TakeAlong, TakesWhatIsInfinite) {
  const double far = std::numeric_limits<double>::infinity();
  const auto y =
      reference_call("take_along", {numbers({1, 3}, {-far, 2, far}), places({1, 2}, {1, 2})})[0];
  EXPECT_EQ(y, (std::vector<double>{2, far}));
}

TEST(AddAlong, AddsUpWhatNamesAPlace) {
  const auto y = reference_call(
      "add_along",
      {numbers({2, 4}, {1, 2, 4, 8, 16, 32, 64, 128}), places({2, 4}, {1, 1, 0, 1, 2, 3, -1, 0})},
      {{"width", int64_t{3}}})[0];
  EXPECT_EQ(y, (std::vector<double>{4, 11, 0, 128, 0, 16}));
}

// In f32 the small one is lost only where it comes second of three.
TEST(AddAlong, AddsInTheOrderOfThePlaces) {
  const double large = 0x1p24;
  const auto sum = [](std::vector<double> x) {
    return reference_call("add_along", {numbers({1, 3}, std::move(x)), places({1, 3}, {0, 0, 0})},
                          {{"width", int64_t{1}}})[0][0];
  };
  EXPECT_EQ(sum({large, 1, -large}), 0);
  EXPECT_EQ(sum({large, -large, 1}), 1);
}

TEST(PutAlong, PutsTheLastOfSeveral) {
  const auto y = reference_call(
      "put_along", {numbers({2, 3}, {1, 2, 3, 4, 5, 6}), places({2, 3}, {0, 2, 0, 1, 3, -1}),
                    numbers({2, 3}, {10, 20, 30, 40, 50, 60})})[0];
  EXPECT_EQ(y, (std::vector<double>{30, 2, 20, 4, 40, 6}));
}

TEST(Along, RefusesPlacesOfOtherRows) {
  EXPECT_THROW(reference_call("take_along",
                              {numbers({2, 3}, {1, 2, 3, 4, 5, 6}), places({1, 4}, {2, 2, 0, 1})}),
               UserError);
  EXPECT_THROW(reference_call("add_along", {numbers({1, 2}, {1, 2}), places({1, 2}, {0, 0})},
                              {{"width", int64_t{0}}}),
               UserError);
}

}  // namespace
}  // namespace thimble
