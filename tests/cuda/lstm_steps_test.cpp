// lstm_steps on the GPU at sizes where products split their sums: every algorithm that calibration
// may choose gives the CPU's numbers, and the same bits when repeated.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/tunable_kernel.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

struct Size {
  int64_t steps, batch, inputs, hidden;
};

std::vector<Size> sizes() { return {{5, 64, 128, 256}, {3, 7, 50, 96}, {2, 64, 256, 512}}; }

Sample forward_sample(const Size& s) {
  const Shape state = {s.batch, s.hidden};
  const Fill weights = {Fill::Kind::uniform, -0.05, 0.05};
  return {.inputs = {{{s.steps, s.batch, s.inputs}},
                     {state},
                     {state},
                     {{4 * s.hidden, s.inputs}},
                     {{4 * s.hidden, s.hidden}},
                     {{4 * s.hidden}}},
          .fills = {{}, {}, {}, weights, weights, weights}};
}

Sample backward_sample(const Size& s) {
  Sample sample = forward_sample(s);
  const Shape state = {s.batch, s.hidden}, states = {s.steps, s.batch, s.hidden};
  sample.inputs[5] = {{s.steps, s.batch, 4 * s.hidden}};
  for (const Shape& shape : {states, states, state, state, states})
    sample.inputs.push_back({shape});
  sample.fills[5] = {Fill::Kind::uniform, 0.1, 0.9};
  sample.attrs = {{"needs_dx", int64_t{1}}};
  sample.accumulate = 0x1c;
  return sample;
}

// 16 bits: as in the conformance suite, a unit in the last place of the largest.
void expect_all_variants(Backend& cpu, Backend& gpu, std::string_view name, const Sample& sample,
                         DType dtype, double tolerance) {
  const OpDef& op = *find_op(name);
  SCOPED_TRACE(describe(op, sample));
  SCOPED_TRACE(name_of(dtype));
  const OpCase op_case = make_case(op, sample, switched_types(op, sample, dtype), dtype);
  const auto expected = run_case(op_case, {.backend = &cpu});
  auto& kernel = dynamic_cast<TunableKernel&>(gpu.kernel(op_case.signature));
  for (int v = 0; v < kernel.variants(); ++v) {
    kernel.use(v);
    SCOPED_TRACE(kernel.name);
    const auto got = run_case(op_case, {.backend = &gpu});
    const auto moved = run_case(op_case, {.backend = &gpu, .shift = 3});
    for (size_t k = 0; k < expected.size(); ++k) {
      SCOPED_TRACE(k);
      expect_near(got[k], expected[k], tolerance);
      EXPECT_TRUE(same_bits(got[k], moved[k])) << "differs when repeated elsewhere";
    }
  }
  kernel.use(0);
}

TEST(CudaLstmSteps, EveryAlgorithmGivesTheNumbersOfTheCpu) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {.tf32 = false});
  for (const Size& size : sizes()) {
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::f32, 1e-5}, {DType::f16, 1e-3}, {DType::bf16, 8e-3}}) {
      // The CPU's 16-bit kernel is the plain one, slow at the larger sizes.
      if (dtype != DType::f32 && size.hidden > 96) continue;
      expect_all_variants(*cpu, *gpu, "lstm_steps", forward_sample(size), dtype, tolerance);
      expect_all_variants(*cpu, *gpu, "lstm_steps_backward", backward_sample(size), dtype,
                          tolerance);
    }
  }
}

}  // namespace
}  // namespace thimble
