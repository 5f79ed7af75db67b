#include "base/error.h"
#include "reference_call.h"

namespace thimble {
namespace {

TestTensor tensor(Shape shape, std::vector<double> values) {
  return {{shape, DType::f64}, std::move(values)};
}

TEST(Matmul, TransposesSwapTheLastTwoAxes) {
  const std::vector<double> product = {58, 64, 139, 154};  // [1 2 3, 4 5 6] [7 8, 9 10, 11 12]
  const TestTensor a = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor b = tensor({3, 2}, {7, 8, 9, 10, 11, 12});
  const TestTensor a_swapped = tensor({3, 2}, {1, 4, 2, 5, 3, 6});
  const TestTensor b_swapped = tensor({2, 3}, {7, 9, 11, 8, 10, 12});
  const Attrs swap_a = {{"transpose_a", int64_t{1}}};
  const Attrs swap_b = {{"transpose_b", int64_t{1}}};
  EXPECT_EQ(reference_call("matmul", {a, b})[0], product);
  EXPECT_EQ(reference_call("matmul", {a_swapped, b}, swap_a)[0], product);
  EXPECT_EQ(reference_call("matmul", {a, b_swapped}, swap_b)[0], product);
}

TEST(Matmul, OneMatrixServesAWholeBatch) {
  const TestTensor a = tensor({2, 1, 2}, {1, 2, 3, 4});
  const TestTensor b = tensor({2, 2}, {1, 10, 100, 1000});
  EXPECT_EQ(reference_call("matmul", {a, b})[0], (std::vector<double>{201, 2010, 403, 4030}));
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  const auto infer = [](Shape a, Shape b, Attrs attrs = {}) {
    return find_op("matmul")->infer(std::vector<TensorType>{{a}, {b}}, attrs);
  };
  EXPECT_THROW(infer({2, 3}, {4, 2}), UserError);        // inner extents
  EXPECT_THROW(infer({2, 2, 3}, {4, 3, 2}), UserError);  // leading extents
  EXPECT_THROW(infer({3}, {3, 2}), UserError);           // a vector
  EXPECT_THROW(infer({2, 3, 2}, {3, 2}, {{"transpose_a", int64_t{1}}}), UserError);
  EXPECT_EQ(infer({5, 2, 3}, {3, 7})[0].shape, (Shape{5, 2, 7}));
}

TEST(Matmul, CountsTwoOperationsPerProduct) {
  const OpDef* op = find_op("matmul");
  const Signature signature{op, {}, {{{5, 2, 3}}, {{3, 7}}}, {{{5, 2, 7}}}, 0};
  EXPECT_EQ(op->work_of(signature).flops, 2.0 * 5 * 2 * 3 * 7);
}

}  // namespace
}  // namespace thimble
