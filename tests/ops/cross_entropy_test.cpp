#include <cmath>

#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor logits(std::vector<double> values, int64_t rows, int64_t classes) {
  return {{{rows, classes}, DType::f64}, std::move(values)};
}
TestTensor labels(std::vector<double> values) {
  const int64_t rows = static_cast<int64_t>(values.size());
  return {{{rows}, DType::i32}, std::move(values)};
}
TestTensor scalar(double value) { return {{{1}, DType::f64}, {value}}; }

// Odds 1 : 2 : 5, so that the probabilities are 1/8, 1/4 and 5/8.
const std::vector<double> kOdds = {std::log(1.0), std::log(2.0), std::log(5.0)};

TEST(CrossEntropy, IsTheNegativeLogProbabilityOfTheLabel) {
  const auto out =
      reference_call("softmax_cross_entropy", {logits(kOdds, 1, 3), labels({1}), scalar(1)});
  EXPECT_NEAR(out[0][0], std::log(4.0), kExact);
  EXPECT_NEAR(out[1][0], std::log(8.0), kExact);
}

TEST(CrossEntropy, SmoothingSpreadsTheTargetOverAllClasses) {
  const auto out =
      reference_call("softmax_cross_entropy", {logits(kOdds, 1, 3), labels({1}), scalar(1)},
                     {{"label_smoothing", 0.3}});
  const double even = (std::log(8.0) + std::log(4.0) + std::log(8.0 / 5)) / 3;
  EXPECT_NEAR(out[0][0], 0.7 * std::log(4.0) + 0.3 * even, kExact);
}

TEST(CrossEntropy, IgnoredAndImpossibleLabelsAddNothing) {
  std::vector<double> rows = kOdds;
  for (int copy = 0; copy < 3; ++copy) rows.insert(rows.end(), kOdds.begin(), kOdds.end());
  const Attrs attrs = {{"ignore_index", int64_t{2}}};
  const std::vector<TestTensor> inputs = {logits(rows, 4, 3), labels({0, 2, 3, -5}), scalar(0.25)};
  const auto out = reference_call("softmax_cross_entropy", inputs, attrs);
  EXPECT_NEAR(out[0][0], 0.25 * std::log(8.0), kExact);

  const auto d = reference_call(
      "softmax_cross_entropy_backward",
      {inputs[0], {{{4}, DType::f64}, out[1]}, inputs[1], inputs[2], scalar(2)}, attrs);
  expect_near(d[0], {0.5 * (0.125 - 1), 0.5 * 0.25, 0.5 * 0.625, 0, 0, 0, 0, 0, 0, 0, 0, 0},
              kExact);
}

TEST(CrossEntropy, LargeAndMaskedLogitsStayFinite) {
  const auto out = reference_call("softmax_cross_entropy",
                                  {logits({1000, 999, -INFINITY}, 1, 3), labels({0}), scalar(1)});
  EXPECT_NEAR(out[0][0], std::log1p(std::exp(-1.0)), 1e-9);  // beside a log-sum-exp of 1000
}

TEST(CrossEntropy, RefusesLabelsOfAnotherLength) {
  EXPECT_THROW(
      reference_call("softmax_cross_entropy", {logits(kOdds, 1, 3), labels({1, 2}), scalar(1)}),
      UserError);
}

TEST(CountCorrect, TakesTheFirstOfEqualLogits) {
  const auto out = reference_call("count_correct",
                                  {logits({1, 3, 3, 2, 2, 2, 0, 0, 1}, 3, 3), labels({1, 2, 2})});
  EXPECT_EQ(out[0][0], 2);
}

TEST(CountCorrect, NeverCountsIgnoredRows) {
  const auto out = reference_call("count_correct", {logits({1, 0}, 1, 2), labels({-1})});
  EXPECT_EQ(out[0][0], 0);
}

}  // namespace
}  // namespace thimble
