// matmul on the GPU where sums are cut into parts: the CPU's numbers in every orientation and type,
// written and added, whatever is left over. The bits are the same wherever tensors lie, and scratch
// has the bytes that the parts' sums take.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/kernel.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

struct Long {
  int64_t m, n, k;
};

// Nothing left over, odd depths, columns that no vector fits, results that no vector fits.
constexpr std::array<Long, 6> kLong = {{{256, 512, 4000},
                                        {256, 124, 4001},
                                        {124, 256, 3989},
                                        {64, 10, 5003},
                                        {7, 3, 2047},
                                        {1, 1, 1024}}};

Sample sample_of(const Long& p, bool transpose_a, bool transpose_b, bool add) {
  return {.inputs = {{transpose_a ? Shape{p.k, p.m} : Shape{p.m, p.k}},
                     {transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n}}},
          .attrs = {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}},
          .accumulate = add ? 1u : 0u};
}

class CudaLongProduct : public testing::Test {
 protected:
  void expect_like_the_cpu(const Sample& sample, DType dtype, double tolerance, Backend* gpu) {
    SCOPED_TRACE(describe(matmul, sample) + " " + std::string(name_of(dtype)));
    const OpCase op_case = make_case(matmul, sample, switched_types(matmul, sample, dtype), dtype);
    SCOPED_TRACE(gpu->kernel(op_case.signature).name);
    const auto expected = run_case(op_case, {.backend = cpu.get()});
    const auto got = run_case(op_case, {.backend = gpu});
    const auto moved = run_case(op_case, {.backend = gpu, .shift = 3});
    expect_near(got[0], expected[0], tolerance);
    EXPECT_TRUE(same_bits(got[0], moved[0])) << "differs when repeated elsewhere";
  }

  const OpDef& matmul = *find_op("matmul");
  const std::unique_ptr<Backend> cpu = make_backend("cpu", {.threads = 2});
  const std::unique_ptr<Backend> full = make_backend("cuda", {.tf32 = false});
  const std::unique_ptr<Backend> tf32 = make_backend("cuda", {.tf32 = true});
};

// Results of 16 bits are rounded once, TF32 rounds every factor to 10 bits.
TEST_F(CudaLongProduct, GivesTheNumbersOfTheCpu) {
  for (const Long& p : kLong) {
    for (const auto& [a, b] :
         {std::pair{true, false}, {false, false}, {false, true}, {true, true}}) {
      for (const bool add : {false, true}) {
        const Sample sample = sample_of(p, a, b, add);
        expect_like_the_cpu(sample, DType::f32, 2e-5, full.get());
        expect_like_the_cpu(sample, DType::f32, 4e-3, tf32.get());
        expect_like_the_cpu(sample, DType::f16, 2e-3, full.get());
        expect_like_the_cpu(sample, DType::bf16, 1e-2, full.get());
      }
    }
  }
}

TEST_F(CudaLongProduct, TakesTheScratchOfItsPartsAlone) {
  const auto kernel = [&](const Sample& sample, DType dtype) -> const Kernel& {
    const auto types = switched_types(matmul, sample, dtype);
    return full->kernel(make_case(matmul, sample, types, dtype).signature);
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const Kernel& cut = kernel(sample_of({256, 512, 4000}, true, false, false), dtype);
    int parts = 0;
    ASSERT_EQ(std::sscanf(cut.name.c_str(), "cublaslt in %d parts", &parts), 1) << cut.name;
    EXPECT_GE(parts, 2);
    EXPECT_EQ(cut.workspace, Bytes(parts * 256 * 512 * 4));
  }
  EXPECT_EQ(kernel(sample_of({768, 3072, 4096}, true, false, false), DType::bf16).name, "cublaslt");
  EXPECT_EQ(kernel(sample_of({256, 512, 512}, true, false, false), DType::f32).name, "cublaslt");
}

}  // namespace
}  // namespace thimble
