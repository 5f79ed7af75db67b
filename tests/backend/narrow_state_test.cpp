// Optimizer state in bf16, rounded at random: right on average, where rounding to nearest is not.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "graph/attrs.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

constexpr int64_t kNumbers = 512, kSteps = 1500;
constexpr double kGradient = 0.7, kBeta2 = 0.999;

// The mean of the second moments of Adam after so many steps of one gradient.
double mean_moment(std::string_view rounding, int64_t seed, Backend* backend) {
  const TensorType wide = {{kNumbers}}, narrow = {{kNumbers}, DType::bf16}, scalar = {{1}};
  Sample sample = {.inputs = {wide, wide, narrow, narrow, scalar, scalar},
                   .attrs = {{"rule", std::string("adam")},
                             {"beta2", kBeta2},
                             {"rounding", std::string(rounding)},
                             {"stream", int64_t{3}}}};
  const bool random = rounding == "stochastic";
  if (random) sample.inputs.push_back({{2}, DType::i64});
  OpCase update = make_case(*find_op("update"), sample);
  for (int64_t i = 0; i < kNumbers; ++i) {
    update.inputs[1].set(i, kGradient);
    update.inputs[2].set(i, 0);
    update.inputs[3].set(i, 0);
  }
  update.inputs[4].set(0, 0);  // a rate of nought
  for (int64_t step = 1; step <= kSteps; ++step) {
    update.inputs[5].set(0, static_cast<double>(step));
    if (random) {
      update.inputs[6].set(0, static_cast<double>(seed));
      update.inputs[6].set(1, static_cast<double>(step));
    }
    std::vector<Tensor> after = run_case(update, {.backend = backend});
    update.inputs[2] = std::move(after[1]);
    update.inputs[3] = std::move(after[2]);
  }
  double sum = 0;
  for (int64_t i = 0; i < kNumbers; ++i) sum += update.inputs[3].get(i);
  return sum / kNumbers;
}

TEST(NarrowState, SecondMomentsAreRightOnAverage) {
  const double exact = kGradient * kGradient * (1 - std::pow(kBeta2, kSteps));
  const std::unique_ptr<Backend> cpu = make_cpu_backend(2);
  double sum = 0;
  constexpr int64_t kSeeds = 4;
  for (int64_t seed = 1; seed <= kSeeds; ++seed) sum += mean_moment("stochastic", seed, cpu.get());
  // A step's rounding is off by 2^-8 of a number at most, and what it leaves fades over a thousand
  // steps: 2^-8 sqrt(1000 / 2) = 9 % of one number, 0.2 % of the mean of 2,048. Five times that.
  EXPECT_NEAR(sum / kSeeds, exact, 0.01 * exact);
  // To nearest, a moment stays where a thousandth of what is missing rounds to nothing.
  EXPECT_LT(mean_moment("nearest", 0, cpu.get()), 0.8 * exact);
  // The plain kernel makes the same numbers.
  EXPECT_NEAR(mean_moment("stochastic", 1, nullptr), mean_moment("stochastic", 1, cpu.get()),
              1e-3 * exact);
}

// A rank's part of a tensor is rounded by the random words of its elements, not by those of the first
// rank's: a part of the whole's update, to the bit.
TEST(NarrowState, RanksRoundByTheWordsOfTheWhole) {
  constexpr int64_t kWhole = 192, kPart = 64, kStep = 5;
  const std::unique_ptr<Backend> cpu = make_cpu_backend(2);
  const auto updated = [&](int64_t first, int64_t count, int64_t rank, Backend* backend) {
    const TensorType wide = {{count}}, narrow = {{count}, DType::bf16}, scalar = {{1}};
    const Sample sample = {
        .inputs = {wide, wide, narrow, narrow, scalar, scalar, {{2}, DType::i64}},
        .attrs = {{"rule", std::string("adam")},
                  {"rounding", std::string("stochastic")},
                  {"shard", int64_t{count != kWhole}},
                  {"stream", int64_t{3}}}};
    OpCase update = make_case(*find_op("update"), sample);
    for (int64_t i = 0; i < count; ++i) {
      const auto element = static_cast<double>(first + i);
      update.inputs[0].set(i, element);
      update.inputs[1].set(i, std::sin(element));
      update.inputs[2].set(i, 0.3 + 1e-3 * element);
      update.inputs[3].set(i, 0.1 + 1e-3 * element);
    }
    update.inputs[4].set(0, 1e-3);
    update.inputs[5].set(0, kStep);
    update.inputs[6].set(0, 7);
    update.inputs[6].set(1, static_cast<double>(kStep + (rank << 32)));
    return run_case(update, {.backend = backend});
  };
  for (Backend* const backend : {cpu.get(), static_cast<Backend*>(nullptr)}) {
    const std::vector<Tensor> whole = updated(0, kWhole, 0, backend);
    for (int64_t rank = 0; rank < kWhole / kPart; ++rank) {
      const std::vector<Tensor> part = updated(rank * kPart, kPart, rank, backend);
      const std::vector<Tensor> alike = updated(rank * kPart, kPart, 0, backend);
      bool other = false;
      for (size_t k = 0; k < whole.size(); ++k) {
        for (int64_t i = 0; i < kPart; ++i) {
          EXPECT_EQ(part[k].get(i), whole[k].get(rank * kPart + i)) << k << " " << i;
          other = other || alike[k].get(i) != part[k].get(i);
        }
      }
      EXPECT_EQ(other, rank > 0);
    }
  }
}

}  // namespace
}  // namespace thimble
