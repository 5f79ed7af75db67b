// Batch norm on the GPU at sizes where blocks add up each other's sums: many rows, wide, narrow and
// odd. The CPU's numbers, and the same bits wherever they lie.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

struct Size {
  int64_t rows, channels;
};

std::vector<Size> sizes() {
  return {{70000, 32}, {6272, 256}, {4099, 33},  {300, 1},
          {2, 64},     {9, 8},      {5000, 260}, {600, 4096}};
}

Sample stats_sample(const Size& size) {
  return {.inputs = {{{size.rows, size.channels}}}, .fills = {{Fill::Kind::uniform, 2, 5}}};
}

Sample backward_sample(const Size& size) {
  const Shape x = {size.rows, size.channels}, channel = {size.channels};
  const Fill mean = {Fill::Kind::uniform, 3, 4}, positive = {Fill::Kind::uniform, 0.5, 2};
  Sample sample = {.inputs = {{x}, {channel}, {channel}, {channel}, {channel}, {x}},
                   .attrs = {{"act", std::string("none")}, {"training", int64_t{1}}},
                   .fills = {{Fill::Kind::uniform, 2, 5}, mean, positive, positive, {}, {}}};
  sample.accumulate = size.rows % 2 == 0 ? 1u : 0u;  // of dx
  return sample;
}

void expect_like_the_cpu(std::string_view name, const Sample& sample, DType dtype,
                         double tolerance) {
  const auto cpu = make_backend("cpu", 1);
  const auto gpu = make_backend("cuda", 1);
  const OpDef& op = *find_op(name);
  SCOPED_TRACE(describe(op, sample));
  SCOPED_TRACE(name_of(dtype));
  const OpCase op_case = make_case(op, sample, switched_types(op, sample, dtype), dtype);
  const auto expected = run_case(op_case, {.backend = cpu.get()});
  const auto got = run_case(op_case, {.backend = gpu.get()});
  const auto moved = run_case(op_case, {.backend = gpu.get(), .shift = 3});
  for (size_t k = 0; k < expected.size(); ++k) {
    SCOPED_TRACE(k);
    expect_near(got[k], expected[k], tolerance);
    EXPECT_TRUE(same_bits(got[k], moved[k])) << "differs when repeated elsewhere";
  }
}

// Sums of 70,000 numbers in float, by trees; results are f32.
TEST(CudaBatchNorm, StatisticsOfManyRows) {
  for (const Size& size : sizes()) {
    expect_like_the_cpu("batch_norm_stats", stats_sample(size), DType::f32, 2e-5);
    expect_like_the_cpu("batch_norm_stats", stats_sample(size), DType::f16, 2e-5);
    expect_like_the_cpu("batch_norm_stats", stats_sample(size), DType::bf16, 2e-5);
  }
}

// Without relu: where its mask hangs on a rounding, the two may differ. 16 bits: two units in the
// last place of the largest.
TEST(CudaBatchNorm, GradientsOfManyRows) {
  for (const Size& size : sizes()) {
    expect_like_the_cpu("batch_norm_backward", backward_sample(size), DType::f32, 1e-4);
    expect_like_the_cpu("batch_norm_backward", backward_sample(size), DType::f16, 2e-3);
    expect_like_the_cpu("batch_norm_backward", backward_sample(size), DType::bf16, 1.6e-2);
  }
}

}  // namespace
}  // namespace thimble
