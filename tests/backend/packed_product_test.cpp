// Our own products and the convolutions on top of them, with every kernel that this processor runs:
// against sums in double, and to the bit whatever the team and the addresses.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "backend/cpu/convolve/patch_product.h"
#include "backend/cpu/multiply/product.h"
#include "base/number/philox.h"

namespace thimble {
namespace {

std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::vector<float> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) {
    const PhiloxCounter words = philox({static_cast<uint32_t>(i)}, philox_key(seed));
    result[i] = uniform_from(words[0]) - 0.5f;
  }
  return result;
}

struct Case {
  ProductSize size;
  bool transpose_a, transpose_b;
};

template <class Left, class Right>
struct Factors {
  Left left;
  Right right;
  float* y;
};

template <class Left, class Right>
void run(const Case& c, const MicroKernel& kernel, const float* a, const float* b, float* y,
         size_t shift) {
  const ProductSize& s = c.size;
  const PackedProduct product(s, c.transpose_a, kernel);
  std::vector<std::byte> scratch(product.scratch_bytes() + 64);
  const int64_t pitch = s.y_pitch == 0 ? s.n : s.y_pitch;
  product.run(
      [&](int64_t i) {
        return Factors<Left, Right>{{a + i * s.m * s.k, c.transpose_a ? s.m : s.k},
                                    {b + i * s.k * s.n, c.transpose_b ? s.k : s.n},
                                    y + i * s.m * pitch};
      },
      scratch.data() + 4 * shift);
}

// y of the case, its factors and itself `shift` numbers off their usual places.
std::vector<float> product_of(const Case& c, const MicroKernel& kernel, size_t shift) {
  const ProductSize& s = c.size;
  const int64_t pitch = s.y_pitch == 0 ? s.n : s.y_pitch;
  const auto shifted = [&](int64_t count, uint64_t seed) {
    std::vector<float> all = numbers(count, seed);
    all.insert(all.begin(), shift, 0.0f);
    return all;
  };
  const std::vector<float> a = shifted(s.batch * s.m * s.k, 1), b = shifted(s.batch * s.k * s.n, 2);
  std::vector<float> y = shifted(s.batch * s.m * pitch, 3);
  const auto go = c.transpose_a
                      ? (c.transpose_b ? run<ColumnsOfA, ColumnsOfB> : run<ColumnsOfA, RowsOfB>)
                      : (c.transpose_b ? run<RowsOfA, ColumnsOfB> : run<RowsOfA, RowsOfB>);
  go(c, kernel, a.data() + shift, b.data() + shift, y.data() + shift, shift);
  y.erase(y.begin(), y.begin() + static_cast<ptrdiff_t>(shift));
  return y;
}

void expect_right(const Case& c, const std::vector<float>& y) {
  const ProductSize& s = c.size;
  const int64_t pitch = s.y_pitch == 0 ? s.n : s.y_pitch;
  const std::vector<float> a = numbers(s.batch * s.m * s.k, 1), b = numbers(s.batch * s.k * s.n, 2);
  const std::vector<float> before = numbers(s.batch * s.m * pitch, 3);
  for (int64_t i = 0; i < s.batch; ++i) {
    for (int64_t row = 0; row < s.m; ++row) {
      for (int64_t column = 0; column < pitch; ++column) {
        const auto at = static_cast<size_t>((i * s.m + row) * pitch + column);
        if (column >= s.n) {
          ASSERT_EQ(y[at], before[at]) << "written beside y";
          continue;
        }
        double sum = s.add ? before[at] : 0, size = std::abs(sum);
        for (int64_t p = 0; p < s.k; ++p) {
          const int64_t in_a = i * s.m * s.k + (c.transpose_a ? p * s.m + row : row * s.k + p);
          const int64_t in_b =
              i * s.k * s.n + (c.transpose_b ? column * s.k + p : p * s.n + column);
          const double term = double{a[static_cast<size_t>(in_a)]} * b[static_cast<size_t>(in_b)];
          sum += term;
          size += std::abs(term);
        }
        // A chain of s.k + 1 roundings, each of half a unit of the sum so far at most.
        const double slack = size * static_cast<double>(s.k + 2) * 0x1p-24;
        ASSERT_NEAR(y[at], sum, slack) << row << ", " << column;
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto with_every_storage = [&](const ProductSize& size) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) all.push_back({size, a, b});
    }
  };
  for (const int64_t m : {1, 5, 6, 7, 13}) {
    for (const int64_t n : {1, 3, 8, 16, 17, 33}) with_every_storage({.m = m, .n = n, .k = 3});
  }
  with_every_storage({.m = 100, .n = 10, .k = 513});              // three turns along k
  with_every_storage({.m = 401, .n = 40, .k = 30, .add = true});  // three blocks of rows
  with_every_storage({.batch = 5, .m = 20, .n = 50, .k = 70});
  with_every_storage({.m = 30, .n = 20, .k = 260, .y_pitch = 27, .add = true});
  return all;
}

class WithTeam {
 public:
  explicit WithTeam(int size) : before_(omp_get_max_threads()) { omp_set_num_threads(size); }
  ~WithTeam() { omp_set_num_threads(before_); }

 private:
  int before_;
};

TEST(PackedProduct, IsTheProduct) {
  for (const MicroKernel& kernel : micro_kernels()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(testing::Message()
                   << kernel.name << ": " << c.size.batch << " x " << c.size.m << " x " << c.size.n
                   << " x " << c.size.k << (c.transpose_a ? ", a turned" : "")
                   << (c.transpose_b ? ", b turned" : ""));
      expect_right(c, product_of(c, kernel, 0));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(PackedProduct, HasTheSameBitsOnEveryTeamAndAddress) {
  for (const MicroKernel& kernel : micro_kernels()) {
    for (const Case& c : cases()) {
      const WithTeam alone(1);
      const std::vector<float> expected = product_of(c, kernel, 0);
      for (const int team : {1, 2, 3, 4}) {
        const WithTeam some(team);
        for (const size_t shift : {size_t{0}, size_t{1}, size_t{5}}) {
          ASSERT_EQ(product_of(c, kernel, shift), expected)
              << kernel.name << ", " << team << " threads, " << shift << " off";
        }
      }
    }
  }
}

// `values` rounded to 16 bits.
std::vector<uint16_t> narrowed(DType dtype, const std::vector<float>& values) {
  std::vector<uint16_t> result(values.size());
  narrow(dtype, values.data(), std::ssize(values), result.data());
  return result;
}
std::vector<float> widened(DType dtype, const std::vector<uint16_t>& values) {
  std::vector<float> result(values.size());
  widen(dtype, values.data(), std::ssize(values), result.data());
  return result;
}

template <class Left, class Right, class Y>
struct NarrowFactors {
  Left left;
  Right right;
  Y y;
};

// The case with factors in 16 bits: y in f32, or in 16 bits as well.
template <class Left, class Right>
std::vector<float> narrow_product(const Case& c, const MicroKernel& kernel, DType dtype,
                                  bool narrow_y) {
  ProductSize s = c.size;
  s.narrow = narrow_y;
  const int64_t pitch = s.y_pitch == 0 ? s.n : s.y_pitch;
  const auto a = narrowed(dtype, numbers(s.batch * s.m * s.k, 1));
  const auto b = narrowed(dtype, numbers(s.batch * s.k * s.n, 2));
  std::vector<float> y = numbers(s.batch * s.m * pitch, 3);
  std::vector<uint16_t> y_bits = narrowed(dtype, y);
  const PackedProduct product(s, true, kernel);
  std::vector<std::byte> scratch(product.scratch_bytes());
  const auto left = [&](int64_t i) {
    return Left{{a.data() + i * s.m * s.k, c.transpose_a ? s.m : s.k, dtype}};
  };
  const auto right = [&](int64_t i) {
    return Right{{b.data() + i * s.k * s.n, c.transpose_b ? s.k : s.n, dtype}};
  };
  if (!narrow_y) {
    product.run(
        [&](int64_t i) {
          return NarrowFactors<Left, Right, float*>{left(i), right(i), y.data() + i * s.m * pitch};
        },
        scratch.data());
    return y;
  }
  product.run(
      [&](int64_t i) {
        return NarrowFactors<Left, Right, NarrowRows>{
            left(i), right(i), {y_bits.data() + i * s.m * pitch, dtype}};
      },
      scratch.data());
  return widened(dtype, y_bits);
}

std::vector<float> narrow_product(const Case& c, const MicroKernel& kernel, DType dtype,
                                  bool narrow_y) {
  const auto go = c.transpose_a
                      ? (c.transpose_b ? narrow_product<NarrowColumnsOfA, NarrowColumnsOfB>
                                       : narrow_product<NarrowColumnsOfA, NarrowRowsOfB>)
                      : (c.transpose_b ? narrow_product<NarrowRowsOfA, NarrowColumnsOfB>
                                       : narrow_product<NarrowRowsOfA, NarrowRowsOfB>);
  return go(c, kernel, dtype, narrow_y);
}

// A y in 16 bits is rounded once, whatever it is added to.
TEST(PackedProduct, TakesAndGivesSixteenBits) {
  for (const MicroKernel& kernel : micro_kernels()) {
    for (const Case& c : cases()) {
      for (const DType dtype : {DType::bf16, DType::f16}) {
        const ProductSize& s = c.size;
        const int64_t pitch = s.y_pitch == 0 ? s.n : s.y_pitch;
        SCOPED_TRACE(testing::Message() << kernel.name << ": " << s.batch << " x " << s.m << " x "
                                        << s.n << " x " << s.k << " of " << name_of(dtype));
        const auto a = widened(dtype, narrowed(dtype, numbers(s.batch * s.m * s.k, 1)));
        const auto b = widened(dtype, narrowed(dtype, numbers(s.batch * s.k * s.n, 2)));
        const std::vector<float> before = numbers(s.batch * s.m * pitch, 3);
        const auto before_bits = widened(dtype, narrowed(dtype, before));
        const std::vector<float> wide = narrow_product(c, kernel, dtype, false);
        const std::vector<float> narrow = narrow_product(c, kernel, dtype, true);
        for (int64_t at = 0; at < s.batch * s.m * pitch; ++at) {
          const auto here = static_cast<size_t>(at);
          const int64_t i = at / pitch / s.m, row = at / pitch % s.m, column = at % pitch;
          if (column >= s.n) {
            ASSERT_EQ(wide[here], before[here]) << "written beside y";
            ASSERT_EQ(narrow[here], before_bits[here]) << "written beside y";
            continue;
          }
          double sum = 0, size = 0;
          for (int64_t p = 0; p < s.k; ++p) {
            const int64_t in_a = i * s.m * s.k + (c.transpose_a ? p * s.m + row : row * s.k + p);
            const int64_t in_b =
                i * s.k * s.n + (c.transpose_b ? column * s.k + p : p * s.n + column);
            const double term = double{a[static_cast<size_t>(in_a)]} * b[static_cast<size_t>(in_b)];
            sum += term;
            size += std::abs(term);
          }
          const double slack = (size + 0.5) * static_cast<double>(s.k + 2) * 0x1p-24;
          ASSERT_NEAR(wide[here], sum + (s.add ? before[here] : 0), slack) << row << ", " << column;
          // Rounded once, to 8 or 11 bits.
          const double expected = sum + (s.add ? before_bits[here] : 0);
          const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
          ASSERT_NEAR(narrow[here], expected, slack + std::abs(expected) * unit + 0x1p-25)
              << row << ", " << column;
        }
      }
    }
  }
}

TEST(PackedProduct, SixteenBitsHaveTheSameBitsOnEveryTeam) {
  for (const MicroKernel& kernel : micro_kernels()) {
    for (const Case& c : cases()) {
      const WithTeam alone(1);
      const std::vector<float> expected = narrow_product(c, kernel, DType::bf16, true);
      for (const int team : {2, 3}) {
        const WithTeam some(team);
        ASSERT_EQ(narrow_product(c, kernel, DType::bf16, true), expected)
            << kernel.name << ", " << team << " threads";
      }
    }
  }
}

// Sums in double over everything that a pixel of y and one of x have to do with each other.
template <class Body>
void for_each_term(const Convolution& c, const Body& body) {
  const int64_t inputs = c.in_c / c.groups, outputs = c.out_c / c.groups;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t oh = 0; oh < c.out_h; ++oh) {
      for (int64_t ow = 0; ow < c.out_w; ++ow) {
        for (int64_t kh = 0; kh < c.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < c.kernel_w; ++kw) {
            const int64_t ih = oh * c.stride_h - c.pad_h + kh * c.dilation_h;
            const int64_t iw = ow * c.stride_w - c.pad_w + kw * c.dilation_w;
            if (ih < 0 || ih >= c.in_h || iw < 0 || iw >= c.in_w) continue;
            for (int64_t o = 0; o < c.out_c; ++o) {
              for (int64_t i = 0; i < inputs; ++i) {
                body(static_cast<size_t>(((n * c.in_h + ih) * c.in_w + iw) * c.in_c +
                                         o / outputs * inputs + i),
                     static_cast<size_t>(((o * c.kernel_h + kh) * c.kernel_w + kw) * inputs + i),
                     static_cast<size_t>(((n * c.out_h + oh) * c.out_w + ow) * c.out_c + o));
              }
            }
          }
        }
      }
    }
  }
}

Convolution convolution(int64_t size, int64_t in_c, int64_t out_c, int64_t kernel, int64_t stride,
                        int64_t groups) {
  const int64_t pad = kernel / 2, height = size, width = size + 2;
  return {.batch = 2,
          .in_h = height,
          .in_w = width,
          .in_c = in_c,
          .out_h = (height + 2 * pad - kernel) / stride + 1,
          .out_w = (width + 2 * pad - kernel) / stride + 1,
          .out_c = out_c,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad,
          .dilation_h = 1,
          .dilation_w = 1,
          .groups = groups};
}

class PatchProducts : public testing::TestWithParam<Convolution> {
 protected:
  // The third from the other two.
  void expect_part(ConvolutionPart part, const std::vector<float>& first,
                   const std::vector<float>& second, const std::vector<double>& expected,
                   double terms) {
    const std::vector<float> before = numbers(static_cast<int64_t>(expected.size()), 9);
    for (const bool add : {false, true}) {
      const PatchProduct product(part, GetParam(), add);
      std::vector<std::byte> scratch(product.scratch_bytes());
      std::vector<float> result = before;
      product.run(first.data(), second.data(), result.data(), scratch.data());
      for (size_t i = 0; i < result.size(); ++i) {
        // Terms of a quarter at most, rounded one after another.
        ASSERT_NEAR(result[i], expected[i] + (add ? before[i] : 0), terms * terms * 0x1p-26)
            << (add ? "added at " : "at ") << i;
      }
    }
  }
};

TEST_P(PatchProducts, AreTheConvolutionAndItsGradients) {
  const Convolution c = GetParam();
  const std::vector<float> x = numbers(c.batch * c.in_h * c.in_w * c.in_c, 1);
  const std::vector<float> w = numbers(static_cast<int64_t>(c.weight_count()), 2);
  const std::vector<float> y = numbers(c.batch * c.out_h * c.out_w * c.out_c, 3);
  std::vector<double> to_y(y.size()), to_x(x.size()), to_w(w.size());
  for_each_term(c, [&](size_t ix, size_t iw, size_t iy) {
    to_y[iy] += double{x[ix]} * w[iw];
    to_x[ix] += double{y[iy]} * w[iw];
    to_w[iw] += double{x[ix]} * y[iy];
  });
  const int64_t taps = c.kernel_h * c.kernel_w, pixels = c.batch * c.out_h * c.out_w;
  expect_part(ConvolutionPart::forward, x, w, to_y, static_cast<double>(taps * c.in_c));
  expect_part(ConvolutionPart::backward_data, y, w, to_x, static_cast<double>(taps * c.out_c));
  expect_part(ConvolutionPart::backward_weights, x, y, to_w, static_cast<double>(pixels));
}

INSTANTIATE_TEST_SUITE_P(Shapes, PatchProducts,
                         testing::Values(convolution(9, 3, 16, 3, 1, 1),
                                         convolution(8, 17, 5, 3, 2, 1),
                                         convolution(7, 4, 6, 1, 2, 1),
                                         convolution(6, 8, 12, 3, 1, 4),
                                         convolution(11, 2, 3, 7, 2, 1)));

}  // namespace
}  // namespace thimble
