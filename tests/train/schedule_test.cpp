#include "recipe/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace thimble {
namespace {

using Kind = RateSchedule::Kind;

TEST(Schedule, Constant) {
  const RateSchedule schedule = {.kind = Kind::constant, .base = 0.3};
  for (const int64_t step : {0, 1, 1000000}) EXPECT_EQ(rate_at(schedule, step), 0.3);
}

TEST(Schedule, StepDropsAtItsMilestones) {
  const RateSchedule schedule = {
      .kind = Kind::step, .base = 1, .milestones = {10, 20, 25}, .factor = 0.5};
  EXPECT_EQ(rate_at(schedule, 0), 1);
  EXPECT_EQ(rate_at(schedule, 9), 1);
  EXPECT_EQ(rate_at(schedule, 10), 0.5);
  EXPECT_EQ(rate_at(schedule, 19), 0.5);
  EXPECT_EQ(rate_at(schedule, 20), 0.25);
  EXPECT_EQ(rate_at(schedule, 25), 0.125);
  EXPECT_EQ(rate_at(schedule, 1000), 0.125);
}

TEST(Schedule, CosineGoesFromBaseToFloor) {
  const RateSchedule schedule = {.kind = Kind::cosine, .base = 1, .total_steps = 100, .floor = 0.2};
  EXPECT_EQ(rate_at(schedule, 0), 1);
  EXPECT_NEAR(rate_at(schedule, 25), 0.2 + 0.8 * (0.5 + std::sqrt(0.125)), 1e-12);
  EXPECT_NEAR(rate_at(schedule, 50), 0.6, 1e-12);
  EXPECT_NEAR(rate_at(schedule, 100), 0.2, 1e-12);
  EXPECT_NEAR(rate_at(schedule, 500), 0.2, 1e-12);  // stays there
  for (int64_t step = 1; step <= 100; ++step) {
    EXPECT_LT(rate_at(schedule, step), rate_at(schedule, step - 1));
  }
}

TEST(Schedule, WarmUpIsLinearAndMeetsTheSchedule) {
  for (const Kind kind : {Kind::constant, Kind::step, Kind::cosine, Kind::inverse_sqrt}) {
    const RateSchedule schedule = {
        .kind = kind, .base = 2, .warmup_steps = 4, .total_steps = 100, .milestones = {50}};
    EXPECT_DOUBLE_EQ(rate_at(schedule, 0), 0.4);
    EXPECT_DOUBLE_EQ(rate_at(schedule, 1), 0.8);
    EXPECT_DOUBLE_EQ(rate_at(schedule, 3), 1.6);
    EXPECT_EQ(rate_at(schedule, 4), 2);  // the first behind the ramp
    EXPECT_LE(rate_at(schedule, 5), 2);
  }
}

TEST(Schedule, CosineSpansWhatWarmUpLeaves) {
  const RateSchedule schedule = {
      .kind = Kind::cosine, .base = 1, .warmup_steps = 20, .total_steps = 100};
  EXPECT_EQ(rate_at(schedule, 20), 1);
  EXPECT_NEAR(rate_at(schedule, 60), 0.5, 1e-12);
  EXPECT_NEAR(rate_at(schedule, 100), 0, 1e-12);
}

TEST(Schedule, InverseSquareRoot) {
  const RateSchedule schedule = {.kind = Kind::inverse_sqrt, .base = 1, .warmup_steps = 99};
  EXPECT_DOUBLE_EQ(rate_at(schedule, 399), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 9999), 0.1);
  const RateSchedule cold = {.kind = Kind::inverse_sqrt, .base = 1};
  EXPECT_DOUBLE_EQ(rate_at(cold, 0), 1);
  EXPECT_DOUBLE_EQ(rate_at(cold, 3), 0.5);
}

TEST(Schedule, WarmUpFromARateOfChoice) {
  const RateSchedule schedule = {.base = 1, .warmup_steps = 4, .warmup_start = 0.2};
  EXPECT_DOUBLE_EQ(rate_at(schedule, 0), 0.2);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 2), 0.6);
  EXPECT_DOUBLE_EQ(rate_at(schedule, 4), 1);
}

}  // namespace
}  // namespace thimble
