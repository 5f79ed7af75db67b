// A kernel that was not measured is scaled like its nearest relatives.
#include "execute/model_scale.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

constexpr const char* kDay = "2026-11-16";

TEST(ModelScale, NumbersOfTheSameTypeComeBeforeOthersOfTheOp) {
  const CostTable table = {{"relu(f32[8]) -> f32[8] by own", {2, 1, kDay}},
                           {"relu(bf16[8]) -> bf16[8] by own", {5, 1, kDay}},
                           {"matmul(f32[8] f32[8]) -> f32[8] by own", {12, 1, kDay}}};
  const ModelScale scale(table);
  EXPECT_DOUBLE_EQ(scale.of("relu(f32[16,4]) -> f32[16,4] by own", 1), 2);
  EXPECT_DOUBLE_EQ(scale.of("relu(bf16[16,4]) -> bf16[16,4] by another", 1), 5);
  EXPECT_DOUBLE_EQ(scale.of("matmul(f16[8] f16[8]) -> f16[8] by own", 1), 12);
  const double either = scale.of("relu(f16[16,4]) -> f16[16,4] by own", 1);
  EXPECT_GT(either, 2);
  EXPECT_LT(either, 5);
}

TEST(ModelScale, WhatIsAsLargeCountsMost) {
  const CostTable table = {{"relu(f32[8]) -> f32[8] by own", {10e-6, 1e-6, kDay}},
                           {"relu(f32[8000]) -> f32[8000] by own", {1e-3, 1e-3, kDay}}};
  const ModelScale scale(table);
  EXPECT_NEAR(scale.of("relu(f32[9]) -> f32[9] by own", 1.1e-6), 10, 0.1);
  EXPECT_NEAR(scale.of("relu(f32[9000]) -> f32[9000] by own", 1.1e-3), 1, 0.01);
}

TEST(ModelScale, AnOpThatWasNeverMeasuredIsScaledLikeEverything) {
  const CostTable table = {{"relu(f32[8]) -> f32[8] by own", {2, 1, kDay}},
                           {"matmul(f32[8]) -> f32[8] by own", {10, 3, kDay}},
                           {"step(anything) by 1 streams", {900, 1, kDay}}};
  EXPECT_DOUBLE_EQ(ModelScale(table).of("tanh(f32[8]) -> f32[8] by own", 1), 3);
  EXPECT_DOUBLE_EQ(ModelScale(CostTable()).of("tanh(f32[8]) -> f32[8] by own", 1), 1);
}

}  // namespace
}  // namespace thimble
