// dynamic_conv and light_conv against the band matrix that they never make.
#include <cmath>

#include "base/error.h"
#include "base/number/philox.h"
#include "ops/pointwise/dropout_mask.h"
#include "reference_call.h"

namespace thimble {
namespace {

struct Problem {
  int64_t batch = 2, steps = 7, channels = 6, heads = 2, kernel = 5;
  bool causal = false, shared = false;
  std::vector<double> lengths = {};
  double dropout = 0;

  Shape kernels() const {
    return shared ? Shape{heads, kernel} : Shape{batch, steps, heads * kernel};
  }
  Attrs attrs() const {
    return {{"heads", heads},
            {"kernel", kernel},
            {"causal", int64_t{causal}},
            {"padded", int64_t{!lengths.empty()}},
            {"dropout", dropout},
            {"stream", int64_t{9}}};
  }
};

constexpr std::array<int64_t, 3> kRng = {11, 2, 5};

std::vector<double> made_up(int64_t count, uint64_t seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const auto word = philox({static_cast<uint32_t>(i), 0, 0, 0}, philox_key(seed))[0];
    numbers.push_back(static_cast<double>(uniform_from(word)) * 4 - 2);
  }
  return numbers;
}

std::vector<double> call(const Problem& p, const std::vector<double>& x,
                         const std::vector<double>& w) {
  std::vector<TestTensor> inputs = {{{{p.batch, p.steps, p.channels}, DType::f64}, x},
                                    {{p.kernels(), DType::f64}, w}};
  if (!p.lengths.empty()) inputs.push_back({{{p.batch}, DType::i32}, p.lengths});
  if (p.dropout > 0) {
    inputs.push_back({{{3}, DType::i64}, std::vector<double>(kRng.begin(), kRng.end())});
  }
  return reference_call(p.shared ? "light_conv" : "dynamic_conv", inputs, p.attrs())[0];
}

// y = band x, with a band [T,T] for each row and head.
std::vector<double> by_band(const Problem& p, const std::vector<double>& x,
                            const std::vector<double>& w) {
  const int64_t left = p.causal ? p.kernel - 1 : (p.kernel - 1) / 2;
  const DropoutMask mask(kRng.data(), 9, p.dropout);
  std::vector<double> y(x.size(), 0);
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t head = 0; head < p.heads; ++head) {
      std::vector<std::vector<double>> band(static_cast<size_t>(p.steps),
                                            std::vector<double>(static_cast<size_t>(p.steps), 0));
      for (int64_t t = 0; t < p.steps; ++t) {
        const int64_t at = ((p.shared ? 0 : (n * p.steps + t) * p.heads) + head) * p.kernel;
        double sum = 0;
        for (int64_t k = 0; k < p.kernel; ++k) sum += std::exp(w[static_cast<size_t>(at + k)]);
        for (int64_t k = 0; k < p.kernel; ++k) {
          const int64_t from = t + k - left;
          if (from < 0 || from >= p.steps) continue;
          double tap = std::exp(w[static_cast<size_t>(at + k)]) / sum;
          const auto word = mask.words((at + k) / 4)[static_cast<size_t>((at + k) % 4)];
          if (p.dropout > 0) tap = mask.keeps(word) ? tap / (1 - p.dropout) : 0;
          band[static_cast<size_t>(t)][static_cast<size_t>(from)] = tap;
        }
      }
      const int64_t size = p.channels / p.heads;
      const double length =
          p.lengths.empty() ? static_cast<double>(p.steps) : p.lengths[static_cast<size_t>(n)];
      for (int64_t t = 0; t < p.steps; ++t) {
        for (int64_t from = 0; from < p.steps && static_cast<double>(from) < length; ++from) {
          for (int64_t c = head * size; c < (head + 1) * size; ++c) {
            y[static_cast<size_t>((n * p.steps + t) * p.channels + c)] +=
                band[static_cast<size_t>(t)][static_cast<size_t>(from)] *
                x[static_cast<size_t>((n * p.steps + from) * p.channels + c)];
          }
        }
      }
    }
  }
  return y;
}

void expect_band(const Problem& p) {
  const auto x = made_up(p.batch * p.steps * p.channels, 1);
  const auto w = made_up(p.kernels().elements(), 2);
  expect_near(call(p, x, w), by_band(p, x, w), kExact);
}

TEST(TimeConv, IsTheProductWithABand) {
  for (const bool shared : {false, true}) {
    for (const bool causal : {false, true}) {
      for (const int64_t kernel : {1, 2, 3, 4, 5, 9, 15}) {
        SCOPED_TRACE(fmt::format("shared {} causal {} kernel {}", shared, causal, kernel));
        expect_band({.kernel = kernel, .causal = causal, .shared = shared});
        expect_band({.kernel = kernel, .causal = causal, .shared = shared, .lengths = {3, 7}});
        expect_band({.kernel = kernel, .causal = causal, .shared = shared, .dropout = 0.4});
      }
    }
  }
}

TEST(TimeConv, CausalSeesNothingThatComesLater) {
  const Problem p = {.causal = true};
  auto x = made_up(p.batch * p.steps * p.channels, 1);
  const auto w = made_up(p.kernels().elements(), 2);
  const auto before = call(p, x, w);
  for (int64_t c = 0; c < p.channels; ++c) x[static_cast<size_t>(4 * p.channels + c)] += 1;
  const auto after = call(p, x, w);
  for (int64_t i = 0; i < 4 * p.channels; ++i) {
    EXPECT_EQ(before[static_cast<size_t>(i)], after[static_cast<size_t>(i)]);
  }
}

TEST(TimeConv, WhatIsBehindALengthDoesNotMatter) {
  const Problem p = {.lengths = {4, 6}};
  auto x = made_up(p.batch * p.steps * p.channels, 1);
  const auto w = made_up(p.kernels().elements(), 2);
  const auto before = call(p, x, w);
  for (int64_t c = 0; c < p.channels; ++c) x[static_cast<size_t>(5 * p.channels + c)] = 1e9;
  EXPECT_EQ(before, call(p, x, w));
}

TEST(TimeConv, HeadsDivideTheChannels) {
  const Problem p = {.channels = 5};
  EXPECT_THROW(
      call(p, made_up(p.batch * p.steps * p.channels, 1), made_up(p.kernels().elements(), 2)),
      UserError);
}

}  // namespace
}  // namespace thimble
