#include <cmath>

#include "reference_call.h"

namespace thimble {
namespace {

TestTensor vector_of(std::vector<double> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  return {{{count}, DType::f64}, std::move(values)};
}
TestTensor scalar(double value) { return {{{1}, DType::f32}, {value}}; }
// Learning rates are f32; this one is exact in it.
constexpr double kRate = 0.125;

TEST(Sgd, NesterovLooksOneStepAhead) {
  const Attrs attrs = {{"rule", "nesterov"}, {"momentum", 0.9}};
  // step 1: m = 0.5, step 0.5 + 0.45;  step 2: m = 0.45 + 0.2, step 0.2 + 0.585
  auto out = reference_call(
      "update", {vector_of({1}), vector_of({0.5}), vector_of({0}), scalar(kRate)}, attrs);
  expect_near(out[0], {1 - kRate * 0.95}, kExact);
  expect_near(out[1], {0.5}, kExact);
  out = reference_call(
      "update", {vector_of(out[0]), vector_of({0.2}), vector_of(out[1]), scalar(kRate)}, attrs);
  expect_near(out[0], {1 - kRate * (0.95 + 0.785)}, kExact);
  expect_near(out[1], {0.65}, kExact);
}

TEST(Sgd, HeavyBallDecaysWeightsThroughTheMomentum) {
  const auto out = reference_call(
      "update", {vector_of({2, -4}), vector_of({0.5, 1}), vector_of({1, -1}), scalar(kRate)},
      {{"rule", "sgd"}, {"momentum", 0.5}, {"weight_decay", 0.25}});
  expect_near(out[1], {0.5 * 1 + (0.5 + 0.25 * 2), 0.5 * -1 + (1 - 0.25 * 4)}, kExact);
  expect_near(out[0], {2 - kRate * 1.5, -4 - kRate * -0.5}, kExact);
}

TEST(Sgd, PlainHasNoState) {
  const auto out = reference_call("update", {vector_of({2}), vector_of({0.5}), scalar(kRate)},
                                  {{"rule", "sgd_plain"}, {"weight_decay", 0.25}});
  ASSERT_EQ(out.size(), 1u);
  expect_near(out[0], {2 - kRate * 1}, kExact);
}

// The paper's form: both moments corrected, then divided.
void check_adam(double weight_decay, bool decoupled) {
  const double beta1 = 0.8, beta2 = 0.9, epsilon = 1e-3;
  const Attrs attrs = {{"rule", decoupled ? "adamw" : "adam"},
                       {"beta1", beta1},
                       {"beta2", beta2},
                       {"epsilon", epsilon},
                       {"weight_decay", weight_decay}};
  double w = 1.5, m = 0, v = 0;
  std::vector<double> got_w = {w}, got_m = {m}, got_v = {v};
  for (int step = 1; step <= 4; ++step) {
    const double raw = std::cos(step) * step;
    const auto out = reference_call("update",
                                    {vector_of(got_w), vector_of({raw}), vector_of(got_m),
                                     vector_of(got_v), scalar(kRate), scalar(step)},
                                    attrs);
    got_w = out[0], got_m = out[1], got_v = out[2];

    const double g = raw + (decoupled ? 0 : weight_decay * w);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, step));
    const double v_hat = v / (1 - std::pow(beta2, step));
    const double shrink = decoupled ? kRate * weight_decay * w : 0;
    w -= shrink + kRate * m_hat / (std::sqrt(v_hat) + epsilon);
    expect_near(got_w, {w}, kExact);
    expect_near(got_m, {m}, kExact);
    expect_near(got_v, {v}, kExact);
  }
}

// A weight of 1 and 4000 steps of 2^-12, where neighbours in bf16 are 2^-7 apart: plain rounding
// never moves, the sum with compensation is right to one of them.
TEST(Kahan, AddsUpStepsThatPlainRoundingLoses) {
  const auto bf16 = [](double value) { return TestTensor{{{1}, DType::bf16}, {value}}; };
  double plain = 1, w = 1, c = 0;
  for (int step = 0; step < 4000; ++step) {
    const TestTensor g = bf16(-0x1p-12);
    plain = reference_call("update", {bf16(plain), g, scalar(1)}, {{"rule", "sgd_plain"}})[0][0];
    const auto out = reference_call("update", {bf16(w), g, bf16(c), scalar(1)},
                                    {{"rule", "sgd_plain"}, {"rounding", "kahan"}});
    w = out[0][0];
    c = out[1][0];
  }
  EXPECT_EQ(plain, 1);
  EXPECT_NEAR(w, 1 + 4000 * 0x1p-12, 0x1p-7);
}

// The same with a momentum in 8 bits: a block whose numbers are all alike is coded without error.
TEST(Kahan, AddsUpStepsThatStateInEightBitsMakes) {
  const int64_t count = 256;
  const auto all = [&](DType dtype, double value) {
    return TestTensor{{{count}, dtype}, std::vector<double>(count, value)};
  };
  const double kStep = 0x1p-12;
  double w = 1, c = 0, code = 0, scale = 0;
  for (int step = 0; step < 1000; ++step) {
    const auto out =
        reference_call("update_8bit",
                       {all(DType::bf16, w), all(DType::bf16, -kStep), all(DType::u8, code),
                        scalar(scale), all(DType::bf16, c), scalar(1)},
                       {{"rule", "sgd"}, {"momentum", 0.0}, {"rounding", "kahan"}});
    w = out[0][7], code = out[1][7], scale = out[2][0], c = out[3][7];
  }
  EXPECT_EQ(scale, kStep);
  EXPECT_NEAR(w, 1 + 1000 * kStep, 0x1p-7);
}

TEST(Stochastic, MovesByTheRightAmountOnAverage) {
  const int64_t count = 20'000;
  const std::vector<double> ones(count, 1.0), steps(count, -0x1p-10);
  const auto out =
      reference_call("update",
                     {{{{count}, DType::bf16}, ones},
                      {{{count}, DType::bf16}, steps},
                      scalar(1),
                      {{{2}, DType::i64}, {3, 4}}},
                     {{"rule", "sgd_plain"}, {"rounding", "stochastic"}, {"stream", int64_t{1}}});
  double mean = 0;
  for (const double w : out[0]) mean += w / count;
  EXPECT_NEAR(mean, 1 + 0x1p-10, 5 * 0x1p-7 / (2 * std::sqrt(count)));  // five deviations
}

TEST(Update, SkipsAndUnscalesByItsFactor) {
  const Attrs scaled = {{"rule", "sgd_plain"}, {"scaled", int64_t{1}}};
  const auto out = reference_call(
      "update", {vector_of({2}), vector_of({64}), scalar(kRate), scalar(1.0 / 128)}, scaled);
  expect_near(out[0], {2 - kRate * 0.5}, kExact);
}

TEST(Adam, FollowsThePaper) { check_adam(0, false); }
TEST(Adam, PenalisesWeightsThroughTheGradient) { check_adam(0.1, false); }
TEST(Adam, DecoupledDecaySkipsTheMoments) { check_adam(0.1, true); }

TEST(Adam, FirstStepMovesByTheRateWhateverTheGradient) {
  const auto out = reference_call("update",
                                  {vector_of({0, 0}), vector_of({1e-3, -50}), vector_of({0, 0}),
                                   vector_of({0, 0}), scalar(kRate), scalar(1)},
                                  {{"rule", "adam"}});
  expect_near(out[0], {-kRate, kRate}, kRate * 1e-5);  // epsilon 1e-8 beside a root of 1e-3
}

// Rows and columns of g^2, their product over the mean, and a step whose length is clipped.
TEST(Adafactor, FactorsTheSecondMoment) {
  const TestTensor w = {{{2, 2}, DType::f64}, {1, 1, 1, 1}};
  const TestTensor g = {{{2, 2}, DType::f64}, {3, 1, 2, 0}};
  const TestTensor none = {{{2}, DType::f32}, {0, 0}};
  const auto out = reference_call("adafactor_update", {w, g, none, none, scalar(kRate), scalar(1)});
  expect_near(out[1], {5, 2}, 1e-6);  // means of 9, 1 and of 4, 0: f32
  expect_near(out[2], {6.5, 0.5}, 1e-6);
  const double mean = 3.5;
  std::vector<double> u, moved;
  for (const double ratio : {3 / std::sqrt(5 * 6.5 / mean), 1 / std::sqrt(5 * 0.5 / mean),
                             2 / std::sqrt(2 * 6.5 / mean), 0.0}) {
    u.push_back(ratio);
  }
  double squares = 0;
  for (const double x : u) squares += x * x;
  const double length = kRate / std::max(1.0, std::sqrt(squares / 4));
  for (const double x : u) moved.push_back(1 - length * x);
  expect_near(out[0], moved, 1e-6);
}

TEST(Clipping, BringsANormDownAndNeverUp) {
  for (const double norm : {0.5, 4.0}) {
    const auto factor =
        reference_call("clip_factor", {scalar(norm * norm)}, {{"max_norm", 2.0}})[0];
    expect_near(factor, {std::min(1.0, 2 / norm)}, 1e-6);
    // Of a loss that is scaled by 64, gradients of that norm.
    const auto scaled = reference_call(
        "clip_factor", {scalar(4096 * norm * norm), scalar(1.0 / 64)}, {{"max_norm", 2.0}})[0];
    expect_near(scaled, {std::min(1.0, 2 / norm) / 64}, 1e-6 / 64);
  }
  const double infinite = std::numeric_limits<double>::infinity();
  const Attrs attrs = {{"max_norm", 2.0}};
  EXPECT_TRUE(std::isnan(reference_call("clip_factor", {scalar(infinite)}, attrs)[0][0]));
  EXPECT_EQ(reference_call("clip_factor", {scalar(infinite), scalar(0)}, attrs)[0][0], 0);
}

}  // namespace
}  // namespace thimble
