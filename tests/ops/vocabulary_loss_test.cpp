// vocabulary_loss against the product, the cross-entropy and the count that it is made of.
#include <cmath>

#include "base/number/philox.h"
#include "reference_call.h"

namespace thimble {
namespace {

constexpr int64_t kRows = 13, kWidth = 5, kClasses = 17;

std::vector<double> made_up(int64_t count, uint64_t seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const auto word = philox({static_cast<uint32_t>(i), 0, 0, 0}, philox_key(seed))[0];
    numbers.push_back(static_cast<double>(uniform_from(word)) * 2 - 1);
  }
  return numbers;
}

// Two rows are ignored.
std::vector<double> targets() {
  std::vector<double> numbers;
  for (int64_t r = 0; r < kRows; ++r) {
    numbers.push_back(r % 6 == 2 ? -1 : static_cast<double>(r * 5 % kClasses));
  }
  return numbers;
}

TestTensor f64(Shape shape, std::vector<double> values) {
  return {{shape, DType::f64}, std::move(values)};
}
const TestTensor kH = f64({kRows, kWidth}, made_up(kRows* kWidth, 3));
const TestTensor kWeight = f64({kClasses, kWidth}, made_up(kClasses* kWidth, 4));
const TestTensor kTargets = {{{kRows}, DType::i32}, targets()};
const TestTensor kNormalizer = f64({1}, {0.25});

Attrs attrs(double smoothing, int64_t at_once) {
  return {{"label_smoothing", smoothing},
          {"ignore_index", int64_t{-1}},
          {"rows_at_once", at_once},
          {"takes_over", int64_t{1}}};
}

struct Whole {
  std::vector<double> loss, lse, correct, d_h, d_weight;
  double nll = 0;
};

// By logits that exist whole.
Whole by_logits(double smoothing, double upstream) {
  Whole w;
  const Attrs turned = {{"transpose_b", int64_t{1}}};
  const TestTensor logits =
      f64({kRows, kClasses}, reference_call("matmul", {kH, kWeight}, turned)[0]);
  const auto made =
      reference_call("softmax_cross_entropy", {logits, kTargets, kNormalizer}, attrs(smoothing, 0));
  w.loss = made[0];
  w.lse = made[1];
  w.correct = reference_call("count_correct", {logits, kTargets})[0];
  for (int64_t r = 0; r < kRows; ++r) {
    const double target = kTargets.values[static_cast<size_t>(r)];
    if (target < 0) continue;
    w.nll += w.lse[static_cast<size_t>(r)] -
             logits.values[static_cast<size_t>(r * kClasses + std::llround(target))];
  }
  const TestTensor d =
      f64({kRows, kClasses},
          reference_call("softmax_cross_entropy_backward",
                         {logits, f64({kRows}, w.lse), kTargets, kNormalizer, f64({1}, {upstream})},
                         attrs(smoothing, 0))[0]);
  w.d_h = reference_call("matmul", {d, kWeight})[0];
  w.d_weight = reference_call("matmul", {d, kH}, {{"transpose_a", int64_t{1}}})[0];
  return w;
}

TEST(VocabularyLoss, IsTheLossOfLogitsThatNeverExistWhole) {
  for (const double smoothing : {0.0, 0.1}) {
    const Whole wanted = by_logits(smoothing, 3);
    for (const int64_t at_once : {0, 1, 4, 13}) {
      SCOPED_TRACE(at_once);
      const auto got = reference_call("vocabulary_loss", {kH, kWeight, kTargets, kNormalizer},
                                      attrs(smoothing, at_once));
      expect_near(got[0], wanted.loss, kExact);
      expect_near(got[1], wanted.lse, kExact);
      EXPECT_EQ(got[2], wanted.correct);
      expect_near(got[3], {wanted.nll}, kExact);
      const auto back = reference_call("vocabulary_loss_backward",
                                       {kH, kWeight, kTargets, kNormalizer, f64({1}, {3})},
                                       attrs(smoothing, at_once));
      expect_near(back[0], wanted.d_h, kExact);
      expect_near(back[1], wanted.d_weight, kExact);
      for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(back[2 + k], got[k]);  // to the bit
    }
  }
}

// Smoothing as fairseq has it: (1 - eps) nll + eps / V * the sum over the vocabulary of -log p.
TEST(VocabularyLoss, SmoothsAsFairseq) {
  const double eps = 0.1;
  const auto plain =
      reference_call("vocabulary_loss", {kH, kWeight, kTargets, kNormalizer}, attrs(0, 0));
  const auto smooth =
      reference_call("vocabulary_loss", {kH, kWeight, kTargets, kNormalizer}, attrs(eps, 0));
  double all = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    if (kTargets.values[static_cast<size_t>(r)] < 0) continue;
    for (int64_t c = 0; c < kClasses; ++c) {
      double logit = 0;
      for (int64_t k = 0; k < kWidth; ++k) {
        logit += kH.values[static_cast<size_t>(r * kWidth + k)] *
                 kWeight.values[static_cast<size_t>(c * kWidth + k)];
      }
      all += plain[1][static_cast<size_t>(r)] - logit;
    }
  }
  EXPECT_NEAR(smooth[0][0],
              (1 - eps) * plain[0][0] + 0.25 * eps / static_cast<double>(kClasses) * all, kExact);
  EXPECT_NEAR(smooth[3][0], plain[3][0], kExact);
}

}  // namespace
}  // namespace thimble
