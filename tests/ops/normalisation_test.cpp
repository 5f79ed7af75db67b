#include <cmath>

#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor channels(std::vector<double> values, DType dtype = DType::f64) {
  const int64_t count = static_cast<int64_t>(values.size());
  return {{{count}, dtype}, std::move(values)};
}

TEST(RunningStats, MoveTowardsTheUnbiasedVariance) {
  const auto out =
      reference_call("running_stats_update",
                     {channels({1, 0}), channels({1, 2}), channels({3, -1}), channels({4, 0.5})},
                     {{"count", int64_t{5}}, {"momentum", 0.25}});
  expect_near(out[0], {0.75 * 1 + 0.25 * 3, 0.25 * -1}, kExact);
  expect_near(out[1], {0.75 * 1 + 0.25 * 4 * 5 / 4, 0.75 * 2 + 0.25 * 0.5 * 5 / 4}, kExact);
}

TEST(RunningStats, OneValueHasNoVariance) {
  EXPECT_THROW(reference_call("running_stats_update",
                              {channels({1}), channels({1}), channels({1}), channels({0})},
                              {{"count", int64_t{1}}}),
               UserError);
}

TEST(BatchNormStats, VarianceIsBiasedAndPerChannel) {
  const auto out =
      reference_call("batch_norm_stats", {{{{4, 2}, DType::f64}, {1, 10, 2, 10, 3, 30, 6, 30}}});
  expect_near(out[0], {3, 20}, kExact);
  expect_near(out[1], {(4 + 1 + 0 + 9) / 4.0, 100}, kExact);
}

// A mean of squares minus a squared mean would lose all digits here.
TEST(BatchNormStats, SurviveALargeMean) {
  const auto out = reference_call("batch_norm_stats",
                                  {{{{4, 1}, DType::f32}, {100000, 100001, 100002, 100003}}});
  EXPECT_EQ(out[0][0], 100001.5);
  EXPECT_EQ(out[1][0], 1.25);
}

TEST(Statistics, AreNeverHalfPrecision) {
  const std::vector<TensorType> images = {{{2, 3, 3, 4}, DType::f16}};
  for (const TensorType& type : find_op("batch_norm_stats")->infer(images, {})) {
    EXPECT_EQ(type, (TensorType{{4}, DType::f32}));
  }
  const TensorType gamma = {{4}, DType::f32};  // scales go with them
  const auto group =
      find_op("group_norm")
          ->infer(std::vector<TensorType>{images[0], gamma, gamma}, {{"groups", int64_t{2}}});
  EXPECT_EQ(group[0], images[0]);
  EXPECT_EQ(group[2], (TensorType{{2, 2}, DType::f32}));
}

TEST(BatchNorm, NormalisesScalesShiftsAndCuts) {
  const std::vector<TestTensor> inputs = {{{{3, 1}, DType::f64}, {1, 4, 7}},
                                          channels({4}),
                                          channels({8}),
                                          channels({2}),
                                          channels({0.5})};
  const Attrs attrs = {{"epsilon", 1.0}};
  expect_near(reference_call("batch_norm", inputs, attrs)[0], {-1.5, 0.5, 2.5}, kExact);
  Attrs with_relu = attrs;
  with_relu.set("act", std::string("relu"));
  expect_near(reference_call("batch_norm", inputs, with_relu)[0], {0, 0.5, 2.5}, kExact);
}

TEST(LayerNorm, SavesMeanAndInverseDeviationOfEachRow) {
  const auto out = reference_call(
      "layer_norm", {{{{2, 2}, DType::f64}, {1, 3, -2, 6}}, channels({1, 2}), channels({0, 1})},
      {{"epsilon", 0.0}});
  expect_near(out[0], {-1, 3, -1, 3}, kExact);
  expect_near(out[1], {2, 2}, kExact);
  expect_near(out[2], {1, 0.25}, kExact);
}

// Channels {0,1} and {2,3} of one sample, two places each.
TEST(GroupNorm, GroupsShareStatisticsAcrossPlaces) {
  const auto out = reference_call("group_norm",
                                  {{{{1, 1, 2, 4}, DType::f64}, {1, 3, 0, 0, 3, 1, 10, 10}},
                                   channels({1, 1, 1, 1}),
                                   channels({0, 0, 0, 0})},
                                  {{"groups", int64_t{2}}, {"epsilon", 0.0}});
  expect_near(out[0], {-1, 1, -1, -1, 1, -1, 1, 1}, kExact);
  expect_near(out[1], {2, 5}, kExact);
  expect_near(out[2], {1, 0.2}, kExact);
}

TEST(GroupNorm, RefusesGroupsThatDoNotDivide) {
  const std::vector<TensorType> types = {{{1, 1, 1, 4}}, {{4}}, {{4}}};
  EXPECT_THROW(find_op("group_norm")->infer(types, {{"groups", int64_t{3}}}), UserError);
}

}  // namespace
}  // namespace thimble
