// attention on the GPU at sizes of several tiles, the last of them in part: the CPU's numbers, and the
// same bits when repeated; on tensor cores, where these suit, and without.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "ops/attend/attention_scores.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

std::vector<AttentionCase> cases() {
  return {
      {2, 300, 300, 3, 3, 64, true, false, true, 0},    // GPT
      {2, 300, 300, 3, 3, 64, true, false, true, 0.2},  //
      {2, 257, 257, 4, 2, 64, true, true, true, 0.1},   // shared keys, padding
      {3, 90, 200, 4, 4, 64, false, true, false, 0.1},  // another sequence
      {2, 200, 200, 7, 1, 64, true, false, true, 0},    // seven heads that sum apart
      {1, 190, 333, 2, 1, 128, true, false, false, 0},  // queries at the end of the keys
      {2, 129, 129, 2, 2, 32, false, false, true, 0.5},
      {2, 130, 130, 2, 2, 24, true, false, true, 0.3},       // no size of tensor cores
      {2, 300, 300, 4, 2, 64, true, false, false, 0, true},  // documents
      {2, 300, 300, 3, 3, 128, true, false, true, 0.2, true},
      {2, 257, 257, 2, 2, 32, true, false, true, 0, true},
      {2, 130, 130, 2, 1, 24, true, false, false, 0.3, true},
  };
}

// Softmax's results and their gradients are sums of products that were rounded to 16 bits: two units
// in the last place of the largest.
void expect_alike(Backend& cpu, Backend& gpu, std::string_view name, const Sample& sample,
                  DType dtype, double tolerance) {
  const OpDef& op = *find_op(name);
  SCOPED_TRACE(describe(op, sample));
  SCOPED_TRACE(name_of(dtype));
  const OpCase op_case = make_case(op, sample, switched_types(op, sample, dtype), dtype);
  const auto expected = run_case(op_case, {.backend = &cpu});
  const auto got = run_case(op_case, {.backend = &gpu});
  const auto moved = run_case(op_case, {.backend = &gpu, .shift = 3});
  for (size_t k = 0; k < expected.size(); ++k) {
    SCOPED_TRACE(k);
    expect_near(got[k], expected[k], tolerance);
    EXPECT_TRUE(same_bits(got[k], moved[k])) << "differs when repeated elsewhere";
  }
}

// Of the forward pass, then of the gradient; inputs of the latter are as large as an input of a block.
std::array<Sample, 2> samples_of(const AttentionCase& c) {
  const AttentionGeometry g = attention_geometry("attention", c.sources(), c.attrs());
  Sample forward = {.inputs = c.sources(), .attrs = c.attrs()};
  c.add_extras(forward);
  const TensorType y = g.result(DType::f32);
  Sample backward = {.inputs = c.sources(), .attrs = c.attrs()};
  backward.inputs.insert(backward.inputs.end(), {y, g.lse(DType::f32), y});
  c.add_extras(backward);
  backward.fills[g.sources() + 1] = {Fill::Kind::uniform, 4, 6};
  for (size_t i = 0; i < g.sources(); ++i) backward.fills[i] = {Fill::Kind::uniform, -1, 1};
  return {forward, backward};
}

TEST(CudaAttention, GivesTheNumbersOfTheCpu) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {.tf32 = false});
  for (const AttentionCase& c : cases()) {
    const auto [forward, backward] = samples_of(c);
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::f32, 2e-5}, {DType::f16, 2e-3}, {DType::bf16, 1.6e-2}}) {
      expect_alike(*cpu, *gpu, "attention", forward, dtype, tolerance);
      expect_alike(*cpu, *gpu, "attention_backward", backward, dtype, tolerance);
    }
  }
}

// Factors have the bits of f16.
TEST(CudaAttention, RoundsFactorsOfF32WhereItMay) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {.tf32 = true});
  for (const AttentionCase& c : cases()) {
    const auto [forward, backward] = samples_of(c);
    expect_alike(*cpu, *gpu, "attention", forward, DType::f32, 2e-3);
    expect_alike(*cpu, *gpu, "attention_backward", backward, DType::f32, 2e-3);
  }
}

TEST(CudaAttention, RunsOnTensorCores) {
  const auto gpu = make_backend("cuda", {});
  const AttentionCase gpt = cases().front();
  const OpDef& op = *find_op("attention");
  const Sample sample = {.inputs = gpt.sources(), .attrs = gpt.attrs()};
  const auto name_in = [&](DType dtype) {
    const auto types = switched_types(op, sample, dtype);
    return gpu->kernel(make_case(op, sample, types, dtype).signature).name;
  };
  EXPECT_EQ(name_in(DType::bf16), "own, tensor cores");
  EXPECT_EQ(name_in(DType::f16), "own, tensor cores");
  EXPECT_EQ(name_in(DType::f32), "own, tensor cores");
}

}  // namespace
}  // namespace thimble
