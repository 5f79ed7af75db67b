// vocabulary_loss on the GPU at sizes of several chunks, the last of them shorter, with classes that
// are left over beside a multiple of eight: the CPU's numbers, and the same bits when repeated.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "ops/vocabulary/vocabulary_rows.h"
#include "support/op_harness.h"

namespace thimble {
namespace {

// By how many threads take a row: a few, a block of 256, of 1,024; and without a class left over.
constexpr std::array<VocabularyCase, 5> kCases = {{{70, 24, 61, 0, 0, -1, 20},
                                                   {70, 40, 5003, -1, 0.1, -1, 32},
                                                   {45, 64, 20017, 0, 0, -1, 16},
                                                   {45, 64, 17000, 0, 0.2, 7, 16},
                                                   {33, 16, 1025, 0, 0, -1, 0}}};

// Sums over chunks are rounded to the type of the weight, chunk by chunk.
TEST(CudaVocabularyLoss, GivesTheNumbersOfTheCpu) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {.tf32 = false});
  for (const VocabularyCase& one : kCases) {
    Sample backward = one.sample();
    backward.attrs.set("takes_over", int64_t{1});
    backward.inputs.push_back({{1}});
    backward.fills.push_back({Fill::Kind::uniform, 0.5, 2});
    Sample added = backward;
    added.accumulate = 0b11;
    for (const auto& [name, sample] : {std::pair("vocabulary_loss", one.sample()),
                                       {"vocabulary_loss_backward", backward},
                                       {"vocabulary_loss_backward", added}}) {
      const OpDef& op = *find_op(name);
      for (const auto& [dtype, tolerance] :
           {std::pair{DType::f32, 2e-5}, {DType::f16, 4e-3}, {DType::bf16, 3e-2}}) {
        SCOPED_TRACE(describe(op, sample) + " " + std::string(name_of(dtype)));
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
    }
  }
}

// A frozen weight of 16 bits beside rows of f32: slabs of classes, and classes left over.
TEST(CudaVocabularyLoss, DecodesAFrozenWeightInSlabs) {
  const auto cpu = make_backend("cpu", {.threads = 2});
  const auto gpu = make_backend("cuda", {.tf32 = false});
  for (const VocabularyCase& one : kCases) {
    for (const DType stored : {DType::bf16, DType::f16}) {
      Sample forward = one.sample();
      forward.inputs[1].dtype = stored;
      Sample backward = forward;
      backward.attrs.set("takes_over", int64_t{1});
      backward.inputs.push_back({{1}});
      backward.fills.push_back({Fill::Kind::uniform, 0.5, 2});
      Sample added = backward;
      added.accumulate = 1;
      for (const auto& [name, sample] : {std::pair("vocabulary_loss", forward),
                                         {"vocabulary_loss_backward_data", backward},
                                         {"vocabulary_loss_backward_data", added}}) {
        const OpDef& op = *find_op(name);
        SCOPED_TRACE(describe(op, sample) + " " + std::string(name_of(stored)));
        const OpCase op_case = make_case(op, sample);
        const auto expected = run_case(op_case, {.backend = cpu.get()});
        const auto got = run_case(op_case, {.backend = gpu.get()});
        const auto moved = run_case(op_case, {.backend = gpu.get(), .shift = 3});
        for (size_t k = 0; k < expected.size(); ++k) {
          SCOPED_TRACE(k);
          expect_near(got[k], expected[k], 2e-5);
          EXPECT_TRUE(same_bits(got[k], moved[k])) << "differs when repeated elsewhere";
        }
      }
    }
  }
}

}  // namespace
}  // namespace thimble
