// Products with frozen matrices in few bits on the GPU, in several slabs, the last of them in part: the
// CPU's numbers, the same bits when repeated elsewhere, and scratch that never holds the matrix.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "graph/coded_weight.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

Sample sample_of(const CodedMatrix& matrix, int64_t rows, bool turned) {
  Sample sample = {.inputs = {{{rows, turned ? matrix.columns : matrix.rows}}},
                   .attrs = attrs_of(matrix),
                   .fills = {{}}};
  sample.attrs.set("transpose", int64_t{turned});
  for (const TensorType& type : matrix.types()) {
    sample.inputs.push_back(type);
    const bool codes = type.dtype == DType::u8, scale = type.dtype == DType::f32;
    sample.fills.push_back(codes   ? Fill{Fill::Kind::bytes}
                           : scale ? Fill{Fill::Kind::uniform, 0.5, 1}
                                   : Fill{});
  }
  return sample;
}

// A number decoded to the type of x is rounded once more there, in f16 to 2^-11 of it.
TEST(CudaCodedMatmul, GivesTheNumbersOfTheCpu) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {.tf32 = false});
  const OpDef& op = *find_op("coded_matmul");
  for (const CodedFormat format :
       {CodedFormat::nf4, CodedFormat::int8, CodedFormat::bf16, CodedFormat::f16}) {
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{576, 1536}, {896, 4864}, {131, 67}, {330, 200}}) {
      for (const bool turned : {true, false}) {
        Sample sample = sample_of({format, rows, columns}, 77, turned);
        for (const uint32_t accumulate : {0u, 1u}) {
          sample.accumulate = accumulate;
          for (const auto& [dtype, tolerance] :
               {std::pair{DType::f32, 2e-5}, {DType::f16, 2e-3}, {DType::bf16, 1.6e-2}}) {
            SCOPED_TRACE(describe(op, sample) + " " + std::string(name_of(dtype)));
            std::vector<TensorType> types = sample.inputs;
            types[0].dtype = dtype;
            const OpCase op_case = make_case(op, sample, types, dtype);
            const auto expected = run_case(op_case, {.backend = cpu.get()});
            const auto got = run_case(op_case, {.backend = gpu.get()});
            const auto moved = run_case(op_case, {.backend = gpu.get(), .shift = 3});
            expect_near(got[0], expected[0], tolerance);
            EXPECT_TRUE(same_bits(got[0], moved[0])) << "differs when repeated elsewhere";
          }
        }
      }
    }
  }
}

// A slab and what cuBLASLt's product of it takes.
TEST(CudaCodedMatmul, DecodesNoMatrixWhole) {
  const auto gpu = make_backend("cuda", {});
  const OpDef& op = *find_op("coded_matmul");
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{14336, 4096}, {4096, 14336}, {4864, 896}}) {
    for (const bool turned : {true, false}) {
      const CodedMatrix matrix = {CodedFormat::nf4, rows, columns};
      Sample sample = sample_of(matrix, 4096, turned);
      sample.inputs[0].dtype = DType::bf16;
      const Signature signature = {&op, sample.attrs, sample.inputs,
                                   op.infer(sample.inputs, sample.attrs), 0};
      EXPECT_LT(gpu->kernel(signature).workspace.count, 2 * matrix.elements());
    }
  }
}

}  // namespace
}  // namespace thimble
